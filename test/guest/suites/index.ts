import { SCTP } from '../../scenarios/cases/sctp.ts';
import type { GuestSuite } from '../suite.ts';
import { IPVS_DAEMON } from './daemon/index.ts';
import { IPVS_NETLINK } from './ipvsNetlink.ts';
import { IPVS_PLAN } from './ipvsPlan.ts';
import { IPVS_QUESTIONS } from './ipvsQuestions.ts';
import { contractSuite, scenarioSuite } from './scenarios.ts';

/** With what is asked of the kernel: one suite, so that both share one lab. */
const IPVS_SCENARIOS = scenarioSuite('ipvs');

/** Of rules and packets, without a daemon. In this order. */
export const RULE_SUITES: readonly GuestSuite[] = [
  IPVS_NETLINK,
  IPVS_PLAN,
  contractSuite('ipvs'),
  // The machine's own kernel sends the packets of all scenarios but those of SCTP: see test/scenarios.
  scenarioSuite('iptables-legacy', SCTP),
  { ...IPVS_SCENARIOS, tests: { ...IPVS_SCENARIOS.tests, ...IPVS_QUESTIONS } },
];

/** Of the whole daemon. */
export const DAEMON_SUITES: readonly GuestSuite[] = [IPVS_DAEMON];

export const SUITES: readonly GuestSuite[] = [...RULE_SUITES, ...DAEMON_SUITES];
