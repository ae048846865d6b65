/** One part of the program: what `run` needs. */
export { loadValid, nodeName } from './configuration.ts';
export { daemonOutput } from './daemonOutput.ts';
export { runCommand } from './runCommand.ts';
