/** `npm run soak`: everything at once for some minutes; the exit code says whether it held. */
import { appendFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Lab } from '../../lab/lab.ts';
import { BAD_ARGUMENT, BadArgument, numberOption, option, refuseUnknown } from '../arguments.ts';
import { SOAK_MODES, type SoakMode } from './modes.ts';
import { printReport } from './print.ts';
import { held, runSoak } from './soak.ts';

const NAMES = SOAK_MODES.map(({ name }) => name);

const HELP = `npm run soak [-- OPTIONS]

Each mode under random changes of services, failing transactions, other programs at its rules, kill -9 and restarts, while
clients of services that do not change keep connections open and open new ones. The modes run one after the other.
  --modes nftables,…   some of ${NAMES.join(',')} (default: all)
  --minutes 2          how long, each mode
  --slots 24           how many services change
  --seed N             of the random choices (default: another one each time)
  --log FILE           keeps all that the daemons say
  --report FILE        keeps the reports as text
`;

async function main(args: readonly string[]): Promise<number> {
  if (args.includes('--help')) {
    process.stdout.write(HELP);
    return 0;
  }
  refuseUnknown(args, ['--modes', '--minutes', '--slots', '--seed', '--log', '--report']);
  const modes = modesNamed(option(args, '--modes', NAMES.join(',')));
  const seconds = Math.round(numberOption(args, '--minutes', 2) * 60);
  const seed = numberOption(args, '--seed', Math.floor(Math.random() * 1e9));
  const slots = numberOption(args, '--slots', 24);
  const logFile = option(args, '--log', '') || undefined;
  const reportFile = option(args, '--report', '') || undefined;
  const say = (text: string): void => void process.stdout.write(`${text}\n`);
  const besides = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
  const programs = { plain: besides('./junction.js'), faulty: besides('./soak-daemon.js') };
  let haveAllHeld = true;
  if (reportFile !== undefined) writeFileSync(reportFile, `npm run soak -- ${commandOf(args, seed)}\n`);
  for (const mode of modes) {
    // A lab of its own: nothing of the mode before is there.
    const lab = await Lab.start({ onProgress: say });
    try {
      say(`\n${mode.name}`);
      const report = await runSoak({ lab, mode, seconds, seed, slots, programs, logFile, say });
      const text = printReport(report);
      process.stdout.write(`\n${text}`);
      if (reportFile !== undefined) appendFileSync(reportFile, text);
      haveAllHeld &&= held(report);
    } finally {
      await lab.close();
    }
  }
  return haveAllHeld ? 0 : 1;
}

/** As it can be repeated. */
function commandOf(args: readonly string[], seed: number): string {
  const given = args.filter(
    (_, index) => ![args[index], args[index - 1]].some((each) => /^--(?:report|log)$/.test(each ?? '')),
  );
  return [...given, ...(given.includes('--seed') ? [] : ['--seed', String(seed)])].join(' ');
}

function modesNamed(text: string): readonly SoakMode[] {
  return text.split(',').map((name) => {
    const mode = SOAK_MODES.find((each) => each.name === name);
    if (mode) return mode;
    throw new BadArgument(`--modes ${name}: expected some of ${NAMES.join(',')}`);
  });
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const { message, stack = message } = error instanceof Error ? error : new Error(String(error));
  process.stderr.write(`${error instanceof BadArgument ? message : stack}\n`);
  process.exitCode = error instanceof BadArgument ? BAD_ARGUMENT : 1;
}
