/**
 * The whole daemon in IPVS mode. One suite, so that all of it shares one lab; a start takes ten seconds here, so those that
 * want the same flags come one after another.
 */
import type { GuestSuite } from '../../suite.ts';
import { BAD_INPUT, BAD_SCHEDULER, BAD_START } from './badInput.ts';
import { COMMANDS } from './commands.ts';
import { DRAIN_LIMIT, DRAINING } from './draining.ts';
import { ENDS } from './ends.ts';
import { FLOWS } from './flows.ts';
import { MODES } from './modes.ts';
import { PACKETS } from './packets.ts';
import { TAMPERING } from './tampering.ts';

export const IPVS_DAEMON: GuestSuite = {
  name: 'the daemon in IPVS mode',
  tests: {
    ...BAD_START,
    ...TAMPERING,
    ...PACKETS,
    ...COMMANDS,
    ...FLOWS,
    ...DRAINING,
    ...BAD_SCHEDULER,
    ...DRAIN_LIMIT,
    ...ENDS,
    ...BAD_INPUT,
    ...MODES,
  },
};
