/** How Junction is on every node, worst first: `kubectl junction status`, and the page of a cluster. */
import { isStatus } from '../bundle/status.ts';
import { messageOf } from '../errors.ts';
import { stageOf } from '../explain/statusFindings.ts';
import { NODE_STATES, type NodeObject, type NodeStatus } from '../explain/nodes.ts';
import type { ApiClient } from '../sources/api/client.ts';
import { ApiFailure } from '../sources/api/failure.ts';
import { execInPod, type Kubectl } from '../system/kubectlExec.ts';
import { type JunctionPod, junctionPods, nodeObjects } from './junctionPods.ts';

/** Each is a kubectl, with a connection through the API server and a kubelet. */
const AT_A_TIME = 8;
const LIMIT_MS = 20_000;

/** Returns what Junction said in that pod, or throws. */
type AskPod = (pod: JunctionPod, signal: AbortSignal) => Promise<string>;

const STATUS_COMMAND = ['junction', 'status', '--output', 'json'];
const MAX_STATUS_BYTES = 4 * 1024 * 1024;

export function statusByExec(kubectl: Kubectl): AskPod {
  return async (pod, signal) => {
    const tooLong = new AbortController();
    const chunks: Buffer[] = [];
    let bytes = 0;
    const out = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes <= MAX_STATUS_BYTES) chunks.push(chunk);
      else tooLong.abort(new Error('its answer is too long'));
    };
    let said = '';
    const err = (text: string): void => void (said ||= text.trim());
    const command = { ...pod, pod: pod.name, command: STATUS_COMMAND, out, err };
    await execInPod(kubectl, command, AbortSignal.any([signal, tooLong.signal]));
    if (bytes === 0) throw new Error(said || 'it said nothing');
    return Buffer.concat(chunks).toString('utf8');
  };
}

/** With what the Node objects say; where pods may not be asked, with that alone. Rejects where nothing may be listed. */
export async function allNodes(
  client: ApiClient,
  kubectl: Kubectl,
  namespace: string,
): Promise<readonly NodeStatus[]> {
  const listed = await refusable(nodeObjects(client));
  const pods = await refusable(junctionPods(client, namespace));
  if (listed instanceof ApiFailure && pods instanceof ApiFailure) throw listed;
  const objects: ReadonlyMap<string, NodeObject> = listed instanceof ApiFailure ? new Map() : listed;
  const found =
    pods instanceof ApiFailure
      ? Array.from(objects.keys(), (node): NodeStatus => ({ node, state: 'not asked', detail: pods.message }))
      : await askAll(pods, [...objects.keys()], statusByExec(kubectl));
  return worstFirst(found.map((each) => withObject(each, objects.get(each.node))));
}

async function refusable<T>(listing: Promise<T>): Promise<T | ApiFailure> {
  try {
    return await listing;
  } catch (error) {
    if (error instanceof ApiFailure && error.kind === 'forbidden') return error;
    throw error;
  }
}

/** A node that is not ready is worse than what its pod says of itself, unless that is bad too. */
function withObject(found: NodeStatus, object: NodeObject | undefined): NodeStatus {
  if (!object) return found;
  if (object.isReady || rank(found) < NODE_STATES.indexOf('not ready')) return { ...found, object };
  return { ...found, object, state: 'not ready', detail: `the node is not ready: ${object.reason ?? ''}` };
}

/** One node that fails stops no other. */
export async function askAll(
  pods: readonly JunctionPod[],
  nodes: readonly string[],
  ask: AskPod,
  limitMs = LIMIT_MS,
): Promise<readonly NodeStatus[]> {
  const found: NodeStatus[] = [];
  const waiting = [...pods];
  const work = async (): Promise<void> => {
    for (let pod = waiting.shift(); pod; pod = waiting.shift()) found.push(await askOne(pod, ask, limitMs));
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  const known = new Set(pods.map(({ node }) => node));
  for (const node of nodes)
    if (!known.has(node)) found.push({ node, state: 'no pod', detail: 'Junction does not run there' });
  return worstFirst(found);
}

function worstFirst(all: readonly NodeStatus[]): readonly NodeStatus[] {
  return all.toSorted((a, b) => rank(a) - rank(b) || (a.node < b.node ? -1 : 1));
}

function rank({ state }: NodeStatus): number {
  return NODE_STATES.indexOf(state);
}

/** The user may not, or has no kubectl: nothing is known of the node. */
const NOT_ASKED = /\(Forbidden\)|kubectl is not installed/;

async function askOne(pod: JunctionPod, ask: AskPod, limitMs: number): Promise<NodeStatus> {
  const { node, name } = pod;
  if (!pod.isRunning) return { node, pod: name, state: 'not running', detail: pod.state };
  try {
    const signal = AbortSignal.timeout(limitMs);
    return statusOf(pod, JSON.parse(await ask(pod, signal)));
  } catch (error) {
    if (NOT_ASKED.test(messageOf(error)))
      return { node, pod: name, state: 'not asked', detail: messageOf(error) };
    const isLate = error instanceof Error && error.name === 'TimeoutError';
    const detail = isLate ? `nothing came for ${limitMs / 1000} s` : messageOf(error);
    return { node, pod: name, state: 'no answer', detail };
  }
}

function statusOf({ node, name: pod }: JunctionPod, raw: unknown): NodeStatus {
  if (!isStatus(raw)) return { node, pod, state: 'no answer', detail: 'its answer is of another version' };
  const errors = raw.findings.filter(({ severity }) => severity === 'error');
  const warnings = raw.findings.filter(({ severity }) => severity === 'warning');
  const worst = errors[0] ?? warnings[0];
  const stage = stageOf(raw);
  const state = errors.length > 0 ? 'errors' : stage === 'ok' && warnings.length > 0 ? 'warnings' : stage;
  const detail = worst?.text;
  return { node, pod, state, ...(detail !== undefined && { detail }), status: raw };
}
