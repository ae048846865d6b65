/** The demo from start to end: cluster, Junction, requests, and whatever the user does then. */
import { painter } from '../../src/cli/table.ts';
import { Lab } from '../lab.ts';
import { Expectation } from './expectation.ts';
import { printHints } from './hints.ts';
import { isInGuest } from './inside.ts';
import { JunctionProcess } from './junctionProcess.ts';
import { stay } from './live.ts';
import type { DemoOptions } from './options.ts';
import { type LivePage, livePage } from './page.ts';
import { step } from './progress.ts';
import { printRows, printVerdict } from './report.ts';
import { type DemoProgram, programOf } from './program.ts';
import { junctionSettings } from './settings.ts';
import { type Row, sendAll } from './traffic.ts';
import { printCause } from './writes.ts';

export interface DemoContext {
  readonly options: DemoOptions;
  readonly signal: AbortSignal;
}

/** Returns the exit code: 0 if every request went as planned. */
export async function runDemo(context: DemoContext): Promise<number> {
  // In a guest the page would be out of reach; who started it has one.
  const page = context.options.once || isInGuest() ? undefined : await livePage();
  if (page) process.stdout.write(`${page.text}\n`);
  try {
    return await runCluster(context, page);
  } finally {
    await page?.stop();
  }
}

async function runCluster(context: DemoContext, page: LivePage | undefined): Promise<number> {
  const program = await programOf(context.options, page?.socket);
  try {
    return await runWith(program, context, page);
  } finally {
    await program.dispose();
  }
}

async function runWith(
  program: DemoProgram,
  context: DemoContext,
  page: LivePage | undefined,
): Promise<number> {
  const lab = await step(
    'Starting a cluster',
    (say) => Lab.start({ onProgress: say }),
    () => 'A cluster is up: node1 and node2, two pods on each, and a client outside',
  );
  try {
    context.signal.throwIfAborted();
    const expectation = await Expectation.watch(junctionSettings(context.options));
    try {
      return await demonstrate({ lab, program, expectation, page }, context);
    } finally {
      await expectation.stop();
    }
  } finally {
    await lab.close();
  }
}

interface Stage {
  readonly lab: Lab;
  readonly program: DemoProgram;
  readonly expectation: Expectation;
  readonly page: LivePage | undefined;
}

async function demonstrate(stage: Stage, { options, signal }: DemoContext): Promise<number> {
  const { lab, program } = stage;
  const host = lab.host('node1');
  await program.prepare(host);
  const junction = new JunctionProcess(host, program.command);
  try {
    return await show(stage, junction, { options, signal });
  } finally {
    await junction.end();
  }
}

async function show(
  { lab, program, expectation, page }: Stage,
  junction: JunctionProcess,
  { options, signal }: DemoContext,
): Promise<number> {
  const paint = painter(process.stdout);
  await step(
    `Starting Junction${program.from} on node1`,
    () => unlessAborted(signal, junction.ready()),
    () =>
      `Junction${program.from} serves on node1, mode ${options.mode}${whyFirst(junction)}. ${junction.summary(options.mode)}`,
  );
  const send = (before: readonly Row[] = []): Promise<readonly Row[]> =>
    sendAll(lab, expectation.plans(), before);
  const rows = await step(
    'Sending requests',
    () => unlessAborted(signal, send()),
    (sent) => `${sent.reduce((sum, { outcomes }) => sum + outcomes.length, 0)} requests sent`,
  );
  process.stdout.write(`\n${printRows(rows, paint)}\n${printVerdict(rows, paint)}\n`);
  const exitCode = rows.every(({ surprises }) => surprises.length === 0) ? 0 : 1;
  if (options.once) return exitCode;

  const { variant } = junction;
  process.stdout.write(`\n${printHints({ lab, variant, options, paint, page })}`);
  await stay({ junction, lab, mode: options.mode, first: rows, send, paint, signal });
  return 0;
}

function whyFirst({ firstWrites }: JunctionProcess): string {
  const causes = new Set(firstWrites.map(printCause));
  return causes.size === 0 ? '' : ` (${[...causes].join('; ')})`;
}

async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  work.catch(() => {}); // what it says after an abort is of no interest
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  aborted.catch(() => {});
  return Promise.race([work, aborted]);
}
