/** IPVS as the kernel has it: netlink, rules, and the packets of every scenario. */
import { RULE_SUITES } from './suites/index.ts';
import { testInGuest } from './testInGuest.ts';

testInGuest(RULE_SUITES);
