/** The whole daemon in ipvs mode. */
import { DAEMON_SUITES } from './suites/index.ts';
import { testInGuest } from './testInGuest.ts';

testInGuest(DAEMON_SUITES);
