import { AFFINITY } from '../../scenarios/cases/affinity.ts';
import { CLUSTER_IP } from '../../scenarios/cases/clusterIP.ts';
import { FAMILY_SCENARIOS } from '../../scenarios/cases/families.ts';
import { LOAD_BALANCER } from '../../scenarios/cases/loadBalancer.ts';
import { SCTP } from '../../scenarios/cases/sctp.ts';
import type { GuestSuite } from '../suite.ts';
import { IPVS_DAEMON } from './daemon/index.ts';
import { IPVS_NEIGHBOURS } from './ipvsNeighbours.ts';
import { IPVS_NETLINK } from './ipvsNetlink.ts';
import { IPVS_PLAN } from './ipvsPlan.ts';
import { IPVS_QUESTIONS } from './ipvsQuestions.ts';
import { scenarioSuite } from './scenarios.ts';

/** With what is asked of the kernel: one suite, so that both share one lab. */
const IPVS_SCENARIOS = scenarioSuite('ipvs');

/** In this order; those that take long come last. */
export const SUITES: readonly GuestSuite[] = [
  IPVS_NETLINK,
  IPVS_NEIGHBOURS,
  IPVS_PLAN,
  // The machine's own kernel sends the packets of all scenarios but those of SCTP: see test/scenarios.
  scenarioSuite('iptables-legacy', [
    ...SCTP,
    ...CLUSTER_IP,
    ...LOAD_BALANCER,
    ...AFFINITY,
    ...FAMILY_SCENARIOS,
  ]),
  { ...IPVS_SCENARIOS, tests: { ...IPVS_SCENARIOS.tests, ...IPVS_QUESTIONS } },
  IPVS_DAEMON,
];
