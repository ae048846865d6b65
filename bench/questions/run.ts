/** Questions to a whole proxy, and what they cost syncs. */
import { PROBE } from '../nftables/messages.ts';
import type { ProxyProcess } from '../nftables/proxyProcess.ts';
import { type AskedProxy, withAskedProxy } from './askedProxy.ts';
import type { QuestionRow, QuestionsRun, QuestionsTask } from './messages.ts';

const TO_PROBE = `${PROBE.address}:${PROBE.port}`;
/** As many as a browser asks for at one time. */
const SOME_SERVICES = `/v1/services?${Array.from(
  { length: 200 },
  (_, index) => `service=team-${index % 100}/service-${index}`,
).join('&')}`;
const BY_ENDPOINT = '/v1/names?kind=services&endpoint=192.0.2.';
const EXPLAIN = `/v1/explain?from=outside&to=${TO_PROBE}`;
/** What is asked in a row; the heaviest is one of ten. */
const IN_A_ROW: readonly string[] = [
  EXPLAIN,
  '/v1/explain/default/probe',
  EXPLAIN,
  SOME_SERVICES,
  EXPLAIN,
  BY_ENDPOINT,
  '/v1/services?format=table',
  '/v1/objects/default/probe',
  '/v1/doctor',
  '/v1/services',
];

async function measure(bench: AskedProxy, proxy: ProxyProcess, task: QuestionsTask): Promise<QuestionsRun> {
  const rows: QuestionRow[] = [];
  for (const [name, path, ...command] of [
    ['status', '/v1/status', 'status'],
    ['explain, a packet', EXPLAIN, 'explain', '--from', 'outside', '--to', TO_PROBE],
    ['explain, a service', '/v1/explain/default/probe', 'explain', 'default/probe'],
    ['endpoints', '/v1/endpoints/default/probe', 'endpoints', 'default/probe'],
    ['services', '/v1/services?format=table', 'services'],
    ['services as JSON', '/v1/services', 'services', '--output', 'json'],
    ['some services as JSON', SOME_SERVICES],
    ['services by endpoint', BY_ENDPOINT],
    ['objects of a service', '/v1/objects/default/probe'],
    ['events', '/v1/events'],
    ['doctor', '/v1/doctor'],
    ['snapshot', '/v1/snapshot'],
  ] as const)
    rows.push(await row(bench, name, path, command, task.repetitions));
  const quiet = await bench.changes(task.changes);
  const stop = new AbortController();
  const asking = askInARow(bench, task.questions, stop.signal);
  const asked = await bench.changes(task.changes);
  stop.abort();
  const answered = await asking;
  const { families } = await bench.status();
  const ipv4 = families.find(({ family }) => family === 'IPv4');
  return {
    rows,
    quietMs: quiet.map(({ totalMs }) => totalMs),
    askedMs: asked.map(({ totalMs }) => totalMs),
    syncMs: { quiet: quiet.map(({ syncMs }) => syncMs), asked: asked.map(({ syncMs }) => syncMs) },
    answered,
    history: ipv4?.history ?? { records: 0, bytes: 0, mostBytes: 0 },
    resident: proxy.resident(),
  };
}

async function row(
  bench: AskedProxy,
  name: string,
  path: string,
  command: readonly string[],
  repetitions: number,
): Promise<QuestionRow> {
  const socketMs: number[] = [];
  const commandMs: number[] = [];
  let bytes = 0;
  for (let count = 0; count < repetitions; count++) {
    const { text, ms } = await bench.ask(path);
    bytes = text.length;
    socketMs.push(ms);
    if (command.length > 0) commandMs.push(await bench.command(...command));
  }
  return { name, bytes, socketMs, commandMs };
}

/** One after the other without a pause, and so many in a row again until the end. */
async function askInARow(bench: AskedProxy, most: number, signal: AbortSignal): Promise<number> {
  let answered = 0;
  while (!signal.aborted) {
    for (let count = 0; count < most && !signal.aborted; count++, answered++)
      await bench.ask(IN_A_ROW[count % IN_A_ROW.length] ?? EXPLAIN);
  }
  return answered;
}

const task = JSON.parse(process.argv[2] ?? '{}') as QuestionsTask;
const run = await withAskedProxy(task.sizes, [], (asked, proxy) => measure(asked, proxy, task));
process.stdout.write(`${JSON.stringify(run)}\n`);
