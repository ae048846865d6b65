/**
 * One part of the program: what `run` needs until it has asked the API server. Modes, kernel and questions are loaded while the
 * answer is on its way (`runDaemon` in `src/daemon/start.ts`).
 */
export { loadValid, nodeName } from './configuration.ts';
export { daemonOutput } from './daemonOutput.ts';
export { runCommand } from './runCommand.ts';
