/** `npm run bench -- questions`: how long answers take, and what they cost syncs. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { printColumns } from '../../src/cli/table.ts';
import { numberOption, progress, refuseUnknown } from '../arguments.ts';
import { openNamespace } from '../namespace.ts';
import { mebibytes, median, ms, spread } from '../spread.ts';
import type { QuestionsRun, QuestionsTask } from './messages.ts';

const PROGRAM = fileURLToPath(new URL('bench-questions-run.js', import.meta.url));
const API = fileURLToPath(new URL('bench-nftables-api.js', import.meta.url));
const LIMIT_MS = 1_800_000;

export async function questionsCommand(args: readonly string[]): Promise<void> {
  refuseUnknown(args, ['--services', '--endpoints', '--questions', '--changes', '--repetitions']);
  if (!existsSync(API))
    throw new Error('this benchmark needs a whole checkout: its API server is with the tests');
  const task: QuestionsTask = {
    sizes: {
      services: numberOption(args, '--services', 30_000),
      endpoints: numberOption(args, '--endpoints', 10),
    },
    questions: numberOption(args, '--questions', 100),
    changes: numberOption(args, '--changes', 20),
    repetitions: numberOption(args, '--repetitions', 7),
  };
  const namespace = await openNamespace();
  try {
    progress(`${task.sizes.services} services with ${task.sizes.endpoints} endpoints each, nftables mode`);
    const { code, stdout, stderr } = await namespace.runner(
      [process.execPath, PROGRAM, JSON.stringify(task)],
      { timeoutMs: LIMIT_MS },
    );
    if (code !== 0) throw new Error(`the benchmark's program ended with ${code}\n${stderr}`);
    progress('');
    process.stdout.write(report(task, JSON.parse(stdout) as QuestionsRun));
  } finally {
    namespace.close();
  }
}

function report({ sizes, questions }: QuestionsTask, run: QuestionsRun): string {
  const title = `${sizes.services} services × ${sizes.endpoints} endpoints, nftables mode; ${mebibytes(run.resident)} resident\n\n`;
  const answers = printColumns(
    ['QUESTION', 'ANSWER', 'AT THE SOCKET', 'AS A COMMAND'],
    run.rows.map(({ name, bytes, socketMs, commandMs }) => [
      name,
      `${(bytes / 1000).toFixed(1)} kB`,
      spread(socketMs, ms),
      commandMs.length === 0 ? '–' : spread(commandMs, ms),
    ]),
  );
  const syncs = printColumns(
    ['ONE CHANGE', 'API SERVER TO KERNEL', 'SEEN TO KERNEL'],
    [
      ['without questions', spread(run.quietMs, ms), spread(run.syncMs.quiet, ms)],
      [`during questions, ${questions} in a row`, spread(run.askedMs, ms), spread(run.syncMs.asked, ms)],
      [
        'difference of the middle ones',
        ms(Math.max(0, median(run.askedMs) - median(run.quietMs))),
        ms(Math.max(0, median(run.syncMs.asked) - median(run.syncMs.quiet))),
      ],
    ],
  );
  return `${title}${answers}\n${syncs}
${run.answered} questions were answered during the changes.
Recent changes: ${run.history.records} kept in about ${(run.history.bytes / 1000).toFixed(0)} kB; at most ${mebibytes(run.history.mostBytes)} in each family.
`;
}
