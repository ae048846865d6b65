/**
 * One part of the program: what works on the node itself. The parts are few, because each file that is shared by some of
 * them is one more to open when a command starts.
 */
export { bundleCommand } from './bundleCommand.ts';
export { openBundle } from './bundleSubject.ts';
export { checkCommand } from './checkCommand.ts';
export { cleanupCommand, refuseBesideJunction, runCleanup } from './cleanupCommand.ts';
export { diffCommand } from './diffCommand.ts';
export { doctorCommand } from './doctorCommand.ts';
export { readBundle } from '../bundle/read.ts';
export { uiCommand } from './uiCommand.ts';
