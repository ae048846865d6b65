/** `kubectl junction status`: how Junction is on every node, worst first. */
import { isStatus } from '../bundle/status.ts';
import { messageOf } from '../errors.ts';
import type { Status } from '../explain/status.ts';
import type { JunctionPod } from './pods.ts';

export interface NodeStatus {
  readonly node: string;
  readonly pod?: string;
  readonly state: NodeState;
  /** Why it is not ok. */
  readonly detail?: string;
  readonly status?: Status;
}

/** Worst first. */
export const STATES = ['no answer', 'no pod', 'not running', 'errors', 'warnings', 'ok'] as const;
export type NodeState = (typeof STATES)[number];

/** Each holds a connection through the API server and a kubelet. */
const AT_A_TIME = 8;
const LIMIT_MS = 20_000;

/** Returns what Junction said in that pod, or throws. */
type AskPod = (pod: JunctionPod, signal: AbortSignal) => Promise<string>;

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
  return found.sort((a, b) => rank(a) - rank(b) || (a.node < b.node ? -1 : 1));
}

function rank({ state }: NodeStatus): number {
  return STATES.indexOf(state);
}

async function askOne(pod: JunctionPod, ask: AskPod, limitMs: number): Promise<NodeStatus> {
  const { node, name } = pod;
  if (!pod.isRunning) return { node, pod: name, state: 'not running', detail: pod.state };
  try {
    const signal = AbortSignal.timeout(limitMs);
    return statusOf(pod, JSON.parse(await ask(pod, signal)));
  } catch (error) {
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
  const notServed = raw.families.find(({ isServed }) => !isServed);
  const state = errors.length > 0 || notServed ? 'errors' : warnings.length > 0 ? 'warnings' : 'ok';
  const detail = worst?.text ?? (notServed && `${notServed.family} is not served yet`);
  return { node, pod, state, ...(detail !== undefined && { detail }), status: raw };
}
