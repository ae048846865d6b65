/** Manifests as the input of a plan, and the plan that is made from them in this process. */
import type { ValidConfig } from '../config/effective.ts';
import type { Settings } from '../config/settings.ts';
import { JunctionError } from '../errors.ts';
import type { Cidr, Family } from '../model/ip.ts';
import { type Node, objectKey } from '../model/objects.ts';
import { capacityOf } from '../plan/capacity.ts';
import { Proxier } from '../proxy/proxier.ts';
import { loadManifests, type Manifests, readManifestStream } from '../sources/manifests/store.ts';
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

export function printProblems({ problems, ignored }: Manifests, output: Output): void {
  for (const problem of problems) output.err(`${printSourceProblem(problem)}\n`);
  for (const { where, object, reason } of ignored) {
    output.err(`${printableLine(`${where}: note: ${object} is left alone: ${reason}`)}\n`);
  }
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
export const STDIN = '-';
/** Files and directories, or standard input. */
export async function readManifests({ junction }: ValidConfig, output: Output): Promise<Manifests> {
  const { manifests, strictManifests: strict } = junction;
  const paths = manifests ?? [];
  if (!paths.includes(STDIN)) return loadManifests(paths, { strict });
  if (paths.length > 1)
    throw new JunctionError('MANIFESTS_UNREADABLE', 'manifests: - is standard input, and stands alone', {
      hint: 'Name files and directories, or pipe all documents, with --- between them.',
    });
  if (process.stdin.isTTY) output.err('Reading manifests from standard input, until Ctrl-D …\n');
  return readManifestStream(process.stdin, 'stdin', { strict });
}
