/** `npm run bench -- conntrack`: one service's flows in a large table, in a network namespace of its own. */
import { fileURLToPath } from 'node:url';
import { printColumns } from '../../src/cli/table.ts';
import { numberOption, progress, refuseUnknown } from '../arguments.ts';
import { openNamespace } from '../namespace.ts';
import { ms, spread } from '../spread.ts';
import type { Held, TableOptions, TableRun } from './messages.ts';

const PROGRAM = fileURLToPath(new URL('bench-conntrack-table.js', import.meta.url));

export async function conntrackCommand(args: readonly string[]): Promise<void> {
  refuseUnknown(args, ['--flows', '--stale', '--repetitions']);
  const options: TableOptions = {
    flows: numberOption(args, '--flows', 100_000),
    stale: numberOption(args, '--stale', 200),
    repetitions: numberOption(args, '--repetitions', 5),
  };
  const namespace = await openNamespace();
  try {
    progress(`${options.flows} flows of others, ${options.stale} of the service`);
    const program = [PROGRAM, JSON.stringify(options)];
    const { code, stdout, stderr } = await namespace.runner([process.execPath, ...program]);
    if (code !== 0) throw new Error(`the benchmark's program ended with ${code}\n${stderr}`);
    progress('');
    process.stdout.write(report(options, JSON.parse(stdout) as readonly TableRun[]));
  } finally {
    namespace.close();
  }
}

function report({ flows, stale }: TableOptions, runs: readonly TableRun[]): string {
  const row = (name: string, value: (run: TableRun) => Held): readonly string[] => {
    const all = runs.map(value);
    return [
      name,
      spread(
        all.map((each) => each.ms),
        ms,
      ),
      spread(
        all.map((each) => each.blockMs),
        ms,
      ),
      counts(all),
    ];
  };
  return printColumns(
    [`${flows} FLOWS OF OTHERS, ${stale} OF THE SERVICE`, 'TIME', 'EVENT LOOP HELD FOR', 'READ, DELETED'],
    [
      row('read what the kernel finds for the service', ({ narrow }) => narrow),
      row('read every UDP flow', ({ whole }) => whole),
      row('clean after the service lost its endpoint', ({ one }) => one),
      row('clean at a start, 2001 services', ({ first }) => first),
    ],
  );
}

/** The same every time, or how far apart. */
function counts(all: readonly Held[]): string {
  const numbers = [...new Set(all.map(({ flows }) => flows))].sort((a, b) => a - b);
  return numbers.length === 1 ? `${numbers[0]}` : `${numbers[0]}–${numbers.at(-1)}`;
}
