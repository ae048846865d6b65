/** Manifests as the input of a plan, and the plan that is made from them in this process. */
import type { ValidConfig } from '../config/effective.ts';
import type { Settings } from '../config/settings.ts';
import { JunctionError } from '../errors.ts';
import type { Cidr, Family } from '../model/ip.ts';
import { type Node, objectKey } from '../model/objects.ts';
import { capacityOf } from '../plan/capacity.ts';
import { Proxier } from '../proxy/proxier.ts';
import { loadManifests, type Manifests, readManifestStream } from '../sources/manifests/source.ts';
import { printSourceProblem } from '../sources/source.ts';
import { printableLine } from '../text/printable.ts';
import type { Output } from './output.ts';

/** What is planned from: manifests, standard input, or what an API server has now. */
export interface PlanInput extends Manifests {
  /** Of a cluster, `nodes` has the Node that is planned for, or none. */
  readonly isCluster: boolean;
  /** Where cluster IPs come from, as far as the API server knows. */
  readonly serviceCidrs: readonly Cidr[];
}

export function nodeOf(nodes: readonly Node[], nodeName: string): Node | undefined {
  return nodes.find(({ name }) => name === nodeName);
}

/** A question about an object that is left alone is answered with the reason; a plan has to say so by itself. */
export function printProblems(
  { problems, ignored }: Manifests,
  output: Output,
  which: 'all' | 'problems' = 'all',
): void {
  for (const problem of problems) output.err(`${printSourceProblem(problem)}\n`);
  if (which === 'problems') return;
  for (const { where, object, reason } of ignored) {
    output.err(`${printableLine(`${where}: note: ${object} is left alone: ${reason}`)}\n`);
  }
}

/** Rules for nothing would take down everything: likelier a wrong path, or a pipe from a command that failed. */
export function isNothing({ services, slices, nodes, ignored }: PlanInput): boolean {
  return [services, slices, nodes, ignored].every(({ length }) => length === 0);
}

/** A name with a typo looks like a node without endpoints. Of a cluster only this Node was asked for. */
export function nodeNote(
  { nodes, isCluster }: Pick<PlanInput, 'nodes' | 'isCluster'>,
  { nodeName }: Settings,
): string | undefined {
  if (nodeOf(nodes, nodeName) || (nodes.length === 0 && !isCluster)) return undefined;
  const names = nodes.map(({ name }) => name).sort();
  const some = names.length > MOST_NAMES ? [...names.slice(0, MOST_NAMES), '…'] : names;
  const others = isCluster ? 'kubectl get nodes names those that are there' : `there are ${some.join(', ')}`;
  return `warning: no Node is named ${nodeName}; ${others}. --hostname-override says which one to plan for`;
}

const MOST_NAMES = 10;

/** For a message. */
export function pathNames({ junction }: ValidConfig): string {
  return (junction.manifests ?? []).map((path) => (path === STDIN ? 'standard input' : path)).join(', ');
}

/** A proxier that writes nowhere; its plan and its inputs answer. */
export function planFamily(family: Family, settings: Settings, input: PlanInput): Proxier {
  const capacity = capacityOf(settings.mode, family);
  const proxy = new Proxier({ family, settings, writer: NO_WRITER, capacity });
  for (const service of input.services) proxy.onService(objectKey(service.namespace, service.name), service);
  for (const slice of input.slices) proxy.onEndpointSlice(objectKey(slice.namespace, slice.name), slice);
  proxy.onNode(nodeOf(input.nodes, settings.nodeName));
  proxy.replan();
  return proxy;
}

const NO_WRITER = {
  sync: () => Promise.reject(new Error('a plan is not written anywhere')),
  requestFull: (): void => {},
};

/** Manifests from standard input, as with kubectl. */
const STDIN = '-';

export function isStandardInput({ junction }: Pick<ValidConfig, 'junction'>): boolean {
  return junction.manifests?.includes(STDIN) ?? false;
}

/** Files and directories, or standard input. */
export async function readManifests({ junction }: ValidConfig, output: Output): Promise<Manifests> {
  const paths = junction.manifests ?? [];
  if (!isStandardInput({ junction })) return loadManifests(paths);
  if (paths.length > 1)
    throw new JunctionError('MANIFESTS_UNREADABLE', 'manifests: - is standard input, and stands alone', {
      hint: 'Name files and directories, or pipe all documents, with --- between them.',
    });
  if (process.stdin.isTTY) output.err('Reading manifests from standard input, until Ctrl-D …\n');
  return readManifestStream(process.stdin, 'stdin');
}
