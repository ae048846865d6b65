/** The answer to `/v1/snapshot`: what the plan is made from, one object a line, made as fast as the client reads. */
import type { SnapshotHeader, SnapshotLine } from '../../explain/snapshot.ts';
import type { Node, ObjectKey } from '../../model/objects.ts';
import {
  endpointSliceToKubernetes,
  nodeToKubernetes,
  serviceOfPorts,
  serviceToKubernetes,
} from '../../model/project/toKubernetes.ts';
import type { FamilySubject } from '../../explain/subject.ts';

interface SnapshotOptions {
  readonly header: SnapshotHeader;
  readonly node: Node | undefined;
  readonly families: readonly FamilySubject[];
  readonly pause: () => Promise<void> | undefined;
}

/** Characters that are sent at one time. */
const CHUNK = 64 * 1024;

/**
 * Each service as it is when its turn comes. A service with its slices is consistent; the whole is what the proxy had over
 * the time of the reading.
 */
export async function* snapshotLines({
  header,
  node,
  families,
  pause,
}: SnapshotOptions): AsyncGenerator<string> {
  let chunk = printLine(header);
  if (node) chunk += printLine({ kind: 'object', object: nodeToKubernetes(node) });
  const services = new Set(families.flatMap((family) => [...family.services()]));
  for (const service of services) {
    for (const line of linesOf(service, families)) chunk += line;
    if (chunk.length >= CHUNK) {
      yield chunk;
      chunk = '';
    }
    const waiting = pause();
    if (waiting) await waiting;
  }
  yield chunk;
}

function* linesOf(service: ObjectKey, families: readonly FamilySubject[]): Iterable<string> {
  const whole = serviceOfPorts(families.flatMap((family) => family.portsOf(service)));
  if (whole) yield printLine({ kind: 'object', object: serviceToKubernetes(whole) });
  for (const family of families)
    for (const slice of family.slicesOf(service))
      yield printLine({ kind: 'object', object: endpointSliceToKubernetes(slice) });
}

function printLine(line: SnapshotLine): string {
  return `${JSON.stringify(line)}\n`;
}
