import type { GuestSuite } from '../suite.ts';
import { IPVS_DAEMON } from './daemon/index.ts';
import { IPVS_NETLINK } from './ipvsNetlink.ts';
import { IPVS_PLAN } from './ipvsPlan.ts';
import { PACKETS } from './packets.ts';

/** Of rules and packets, without a daemon. In this order. */
export const RULE_SUITES: readonly GuestSuite[] = [IPVS_NETLINK, IPVS_PLAN, PACKETS];

/** Of the whole daemon. */
export const DAEMON_SUITES: readonly GuestSuite[] = [IPVS_DAEMON];

export const SUITES: readonly GuestSuite[] = [...RULE_SUITES, ...DAEMON_SUITES];
