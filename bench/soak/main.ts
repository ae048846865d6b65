/** `npm run soak`: everything at once for some minutes; the exit code says whether it held. */
import { fileURLToPath } from 'node:url';
import { Lab } from '../../lab/lab.ts';
import { BAD_ARGUMENT, BadArgument, numberOption, option, refuseUnknown } from '../arguments.ts';
import { printReport } from './print.ts';
import { held, runSoak } from './soak.ts';

const HELP = `npm run soak [-- OPTIONS]

The nftables mode under random changes of services, failing transactions, other programs at its table and kill -9,
while clients of services that do not change keep connections open and open new ones.
  --minutes 2     how long
  --slots 24      how many services change
  --seed N        of the random choices (default: another one each time)
  --log FILE      keeps all that the daemon says
`;

async function main(args: readonly string[]): Promise<number> {
  if (args.includes('--help')) {
    process.stdout.write(HELP);
    return 0;
  }
  refuseUnknown(args, ['--minutes', '--slots', '--seed', '--log']);
  const seconds = Math.round(numberOption(args, '--minutes', 2) * 60);
  const seed = numberOption(args, '--seed', Math.floor(Math.random() * 1e9));
  const slots = numberOption(args, '--slots', 24);
  const logFile = option(args, '--log', '') || undefined;
  const say = (text: string): void => void process.stdout.write(`${text}\n`);
  const lab = await Lab.start({ onProgress: say });
  try {
    const besides = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
    const programs = { plain: besides('./junction.js'), faulty: besides('./soak-daemon.js') };
    const report = await runSoak({ lab, seconds, seed, slots, programs, logFile, say });
    process.stdout.write(`\n${printReport(report)}`);
    return held(report) ? 0 : 1;
  } finally {
    await lab.close();
  }
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const { message, stack = message } = error instanceof Error ? error : new Error(String(error));
  process.stderr.write(`${error instanceof BadArgument ? message : stack}\n`);
  process.exitCode = error instanceof BadArgument ? BAD_ARGUMENT : 1;
}
