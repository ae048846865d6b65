import { killChildren } from '../kernel/children.ts';
import { main } from './main.ts';
import { programOutput } from './output.ts';

/** For the last words, if standard error does not take them. */
const FLUSH_MS = 300;

// A program that we run leads a group of its own, so Ctrl-C at a terminal does not reach it.
for (const [signal, code] of [['SIGINT', 130] as const, ['SIGTERM', 143] as const])
  process.once(signal, () => {
    killChildren('SIGKILL');
    process.exit(code);
  });
const output = programOutput();
process.on('exit', () => output.flush?.(FLUSH_MS));
// Nothing is left to wait for; a forgotten timer or socket must not keep the process alive.
process.exit(await main(process.argv.slice(2), output));
