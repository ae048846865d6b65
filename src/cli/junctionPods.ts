/** Junction's pods by the node that each is on, and the nodes. */
import { JunctionError } from '../errors.ts';
import type { NodeObject } from '../explain/nodes.ts';
import { fits, SUBDOMAIN } from '../model/project/names.ts';
import { projectNode } from '../model/project/node.ts';
import type { ApiClient } from '../sources/api/client.ts';
import { ownField, ownText } from '../text/cursor.ts';

export interface JunctionPod {
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
  readonly container: string;
  readonly isRunning: boolean;
  /** `Running`; `Pending: ContainerCreating` */
  readonly state: string;
}

const SELECTOR = 'app.kubernetes.io/name=junction';
const CONTAINER = 'junction';
/** Larger than any cluster that Kubernetes promises. */
const MOST_PODS = 20_000;
const PAGE = '500';
const MOST_PAGE_BYTES = 64 * 1024 * 1024;

/** One for each node: of several, as during an update, the running one. */
export async function junctionPods(client: ApiClient, namespace: string): Promise<readonly JunctionPod[]> {
  const byNode = new Map<string, JunctionPod>();
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`;
  for await (const raw of items(client, path, `pods in ${namespace}`, { labelSelector: SELECTOR })) {
    const pod = podOf(raw, namespace);
    const other = pod && byNode.get(pod.node);
    if (pod && (!other || (pod.isRunning && !other.isRunning))) byNode.set(pod.node, pod);
  }
  return [...byNode.values()].sort((a, b) => (a.node < b.node ? -1 : 1));
}

/** All nodes by name, where the user may list them. */
export async function nodeObjects(client: ApiClient): Promise<ReadonlyMap<string, NodeObject>> {
  const objects = new Map<string, NodeObject>();
  for await (const raw of items(client, '/api/v1/nodes', 'nodes', {})) {
    const name = ownText(ownField(raw, 'metadata'), 'name');
    if (fits(SUBDOMAIN, name)) objects.set(name, objectOf(raw));
  }
  return objects;
}

function objectOf(raw: unknown): NodeObject {
  const status = ownField(raw, 'status');
  const ready = listOf(status, 'conditions').find((each) => ownText(each, 'type') === 'Ready');
  const isReady = ownText(ready, 'status') === 'True';
  const reason = ownText(ready, 'message') || ownText(ready, 'reason') || 'its kubelet has said nothing yet';
  const version = ownText(ownField(status, 'nodeInfo'), 'kubeletVersion');
  const projected = projectNode(raw);
  const zone = projected.kind === 'object' ? projected.value.zone : undefined;
  return {
    isReady,
    ...(!isReady && { reason }),
    addresses: projected.kind === 'object' ? projected.value.ips : [],
    ...(zone !== undefined && { zone }),
    ...(version !== '' && { version }),
  };
}

function listOf(raw: unknown, field: string): readonly unknown[] {
  const list = ownField(raw, field);
  return Array.isArray(list) ? (list as readonly unknown[]) : [];
}

async function* items(
  client: ApiClient,
  path: string,
  what: string,
  query: Readonly<Record<string, string>>,
): AsyncGenerator {
  let token = '';
  let count = 0;
  do {
    const response = await client.get(path, {
      ...query,
      limit: PAGE,
      ...(token !== '' && { continue: token }),
    });
    if (response.status !== 200) throw await client.failureOf(response, `listing ${what}`);
    const page = await readJson(response.body, what);
    const found = listOf(page, 'items');
    yield* found;
    count += found.length;
    token = ownText(ownField(page, 'metadata'), 'continue');
  } while (token !== '' && count < MOST_PODS);
}

async function readJson(body: AsyncIterable<Uint8Array>, what: string): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > MOST_PAGE_BYTES)
      throw new JunctionError('API_MALFORMED', `listing ${what}: the answer is too long`);
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch (cause) {
    throw new JunctionError('API_MALFORMED', `listing ${what}: the answer is not JSON`, { cause });
  }
}

function podOf(raw: unknown, namespace: string): JunctionPod | undefined {
  const metadata = ownField(raw, 'metadata');
  const name = ownText(metadata, 'name');
  const node = ownText(ownField(raw, 'spec'), 'nodeName');
  if (!fits(SUBDOMAIN, name) || !fits(SUBDOMAIN, node)) return undefined;
  const status = ownField(raw, 'status');
  const phase = ownText(status, 'phase') || 'Unknown';
  const isDeleted = ownField(metadata, 'deletionTimestamp') !== undefined;
  const waiting = isDeleted ? 'Terminating' : waitingReason(status);
  const isRunning = phase === 'Running' && waiting === '';
  return {
    namespace,
    name,
    node,
    container: CONTAINER,
    isRunning,
    state: waiting === '' ? phase : `${phase}: ${waiting}`,
  };
}

function waitingReason(status: unknown): string {
  const own = listOf(status, 'containerStatuses').find((each) => ownText(each, 'name') === CONTAINER);
  const state = ownField(own, 'state');
  return ownText(ownField(state, 'waiting'), 'reason') || ownText(ownField(state, 'terminated'), 'reason');
}
