import { isDaemon, main } from './main.ts';
import { giveWayToProxy } from './oomScore.ts';
import { commandOutput } from './output.ts';

/** For the last words, if standard error does not take them. */
const FLUSH_MS = 300;

// A program that we run leads a group of its own, so Ctrl-C at a terminal does not reach it: it is killed at our exit.
for (const [signal, code] of [['SIGINT', 130] as const, ['SIGTERM', 143] as const])
  process.once(signal, () => process.exit(code));
const argv = process.argv.slice(2);
if (!isDaemon(argv)) giveWayToProxy(argv[0]);
const output = isDaemon(argv) ? (await import('./startCommand.ts')).daemonOutput() : commandOutput();
process.on('exit', () => output.flush?.(FLUSH_MS));
const code = await main(argv, output);
const failures = (await output.finished?.()) ?? [];
for (const { stream, error } of failures) {
  // Who reads only the beginning, like head, knows what he does.
  if (error.code !== 'EPIPE') output.err(`junction: cannot write to ${stream}: ${error.message}\n`);
}
await output.finished?.();
// Nothing is left to wait for; a forgotten timer or socket must not keep the process alive.
process.exit(failures.length > 0 ? Math.max(code, 1) : code);
