/** The kubectl plugin: finds Junction's pod on a node, and runs a command there. */
import { open, rm } from 'node:fs/promises';
import { bundleName } from '../bundle/format.ts';
import { askAll, statusByExec } from '../cli/allNodes.ts';
import { UsageError } from '../cli/commands.ts';
import { type JunctionPod, junctionPods, nodeObjects } from '../cli/junctionPods.ts';
import type { Output } from '../cli/output.ts';
import { painter, printColumns } from '../cli/table.ts';
import { errorCode, JunctionError } from '../errors.ts';
import type { NodeState, NodeStatus } from '../explain/nodes.ts';
import { ApiClient } from '../sources/api/client.ts';
import { loadAccess } from '../sources/api/credentials/load.ts';
import { ApiFailure } from '../sources/api/failure.ts';
import { execInPod, type Kubectl } from '../system/kubectlExec.ts';
import { runPlugin } from '../system/pluginProcess.ts';
import { printableLine } from '../text/printable.ts';
import type { Colour } from '../text/paint.ts';
import { systemClock } from '../time/systemClock.ts';
import { VERSION } from '../version.ts';
import { HELP, type PluginArguments, readArguments, remoteCommand } from './arguments.ts';
import { kubeconfigPath } from './kubeconfig.ts';

interface PluginOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  readonly home?: string;
}

/** Returns the exit code: that of the command in the pod. */
export async function runPluginCommand(
  argv: readonly string[],
  output: Output,
  { env, signal, home }: PluginOptions,
): Promise<number> {
  const args = readArguments(argv);
  if (args.command === 'help') {
    output.out(HELP);
    return 0;
  }
  const kubeconfig = kubeconfigPath({ ...args, env, ...(home !== undefined && { home }) });
  const { context } = args;
  const access = await loadAccess({ kubeconfig, context, env, clock: systemClock, runPlugin });
  const client = new ApiClient({
    access,
    clock: systemClock,
    rateLimit: { qps: -1, burst: 0 },
    userAgent: `kubectl-junction/${VERSION} (${process.platform}/${process.arch})`,
  });
  try {
    const pods = await junctionPods(client, args.junctionNamespace);
    const kubectl = { flags: kubectlFlags(args), env };
    if (args.command === 'status' && args.node === '' && args.rest.some((word) => /^--wait\b/.test(word)))
      throw new UsageError(['--wait waits for the proxy of one node: name it with --node']);
    if (args.command === 'status' && args.node === '')
      return await statusOfAll(client, kubectl, pods, args, output);
    const pod = podOn(pods, args);
    if (args.command === 'bundle') return await fetchBundle(kubectl, pod, args, output, signal);
    const command = remoteCommand(args, access.namespace ?? '');
    return await execInPod(kubectl, { ...pod, pod: pod.name, command, ...printing(output) }, signal);
  } finally {
    await client.close();
  }
}

/** It finds what the environment names by itself. */
function kubectlFlags({ kubeconfig, context }: PluginArguments): readonly string[] {
  return [
    ...(kubeconfig === '' ? [] : ['--kubeconfig', kubeconfig]),
    ...(context === '' ? [] : ['--context', context]),
  ];
}

/** What comes is text of another machine. */
function printing(output: Output) {
  const decoder = new TextDecoder();
  return {
    out: (chunk: Buffer): void => output.out(decoder.decode(chunk, { stream: true })),
    err: (text: string): void => output.err(text),
  };
}

const MOST_NAMED = 10;

function podOn(pods: readonly JunctionPod[], { node, junctionNamespace }: PluginArguments): JunctionPod {
  const names = pods.map((pod) => pod.node);
  const some = names.slice(0, MOST_NAMED).join(', ') + (names.length > MOST_NAMED ? ', …' : '');
  const [only, another] = pods;
  if (!only)
    throw new JunctionError('EXEC_FAILED', `no pod of Junction in namespace ${junctionNamespace}`, {
      hint: 'Name its namespace with --junction-namespace; its pods have the label app.kubernetes.io/name=junction.',
    });
  if (node === '' && another)
    throw new UsageError(
      [`--node is missing: which of ${some}?`],
      'kubectl junction status asks all of them',
    );
  const pod = node === '' ? only : pods.find((each) => each.node === node);
  if (!pod) throw new UsageError([`no pod of Junction on node ${node}; there are some on ${some}`]);
  if (pod.isRunning) return pod;
  throw new JunctionError(
    'EXEC_FAILED',
    `pod ${pod.namespace}/${pod.name} on ${pod.node} does not run: ${pod.state}`,
  );
}

/** The file is whole or not there. */
async function fetchBundle(
  kubectl: Kubectl,
  pod: JunctionPod,
  { output: target, force }: PluginArguments,
  output: Output,
  signal: AbortSignal,
): Promise<number> {
  const path = target === '' ? bundleName(pod.node, Date.now()) : target;
  const file = await open(path, force ? 'w' : 'wx', 0o600).catch((error: unknown) => {
    if (errorCode(error) !== 'EEXIST') throw error;
    throw new UsageError([`${path} exists: name another file with --output, or replace it with --force`]);
  });
  let bytes = 0;
  let writing: Promise<unknown> = Promise.resolve();
  let code: number | undefined;
  try {
    const command = ['junction', 'bundle', '--output', '-'];
    const { err } = printing(output);
    const out = (chunk: Buffer): void => {
      bytes += chunk.length;
      writing = writing.then(() => file.writeFile(chunk));
      // It is awaited below.
      writing.catch(() => undefined);
    };
    code = await execInPod(kubectl, { ...pod, pod: pod.name, command, out, err }, signal);
    await writing;
  } finally {
    await writing.catch(() => undefined);
    await file.close();
    if (code !== 0) await rm(path, { force: true });
  }
  if (code === 0)
    output.out(`${printableLine(`${path}: ${Math.ceil(bytes / 1024)} KiB from ${pod.node}`)}\n`);
  return code;
}

async function statusOfAll(
  client: ApiClient,
  kubectl: Kubectl,
  pods: readonly JunctionPod[],
  args: PluginArguments,
  output: Output,
): Promise<number> {
  const nodes = await nodeObjects(client).catch((error: unknown) => {
    if (!(error instanceof ApiFailure)) throw error;
    output.err(`${printableLine(`note: nodes without a pod are not shown: ${error.message}`)}\n`);
    return new Map<string, never>();
  });
  if (pods.length === 0) podOn(pods, args);
  const all = await askAll(pods, [...nodes.keys()], statusByExec(kubectl));
  const format = formatOf(args.rest);
  if (format === 'json') output.out(`${JSON.stringify(all, null, 2)}\n`);
  else output.painted(printAll(all));
  return all.every(({ state }) => state === 'ok' || state === 'warnings') ? 0 : 1;
}

function formatOf(rest: readonly string[]): string {
  const index = rest.findIndex((word) => /^(?:-o|--output)/.test(word));
  const word = rest[index] ?? '';
  return word.includes('=') ? word.replace(/^[^=]*=/, '') : (rest[index + 1] ?? '');
}

const COLOURS: Readonly<Record<NodeState, Colour>> = {
  'no answer': 'red',
  'no pod': 'red',
  'not running': 'red',
  'not ready': 'red',
  errors: 'red',
  starting: 'yellow',
  warnings: 'yellow',
  'not asked': 'yellow',
  ok: 'green',
};
const MOST_DETAIL = 100;

function printAll(all: readonly NodeStatus[]): string {
  const paint = painter(process.stdout);
  const rows = all.map(({ node, state, detail = '', status }) => {
    const sums = (status?.families ?? []).map(({ services, endpoints }) => [services, endpoints] as const);
    return [
      printableLine(node),
      status?.mode ?? '-',
      paint(COLOURS[state], state),
      status ? sums.map(([services]) => services).join('/') : '-',
      status ? sums.map(([, endpoints]) => endpoints).join('/') : '-',
      status ? printableLine(status.version) : '-',
      printableLine(detail.split('\n')[0] ?? '').slice(0, MOST_DETAIL),
    ];
  });
  const header = ['NODE', 'MODE', 'STATE', 'SERVICES', 'ENDPOINTS', 'VERSION', 'DETAIL'];
  return printColumns(header, rows);
}
