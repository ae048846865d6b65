/** The manifests as they are now, read once. */
import type { EndpointSlice, Node, Service } from '../../model/objects.ts';
import type { SourceProblem } from '../source.ts';
import type { World } from '../world.ts';
import type { ReadingOptions } from './chunkReading.ts';
import { contentProblem, readStream } from './content.ts';
import { type IgnoredObject, ignoredObjects, readManifest } from './fileReading.ts';
import { resolve, worldOf } from './resolve.ts';
import { ManifestStore } from './store.ts';

export interface Manifests {
  readonly services: readonly Service[];
  readonly slices: readonly EndpointSlice[];
  readonly nodes: readonly Node[];
  readonly problems: readonly SourceProblem[];
  /** Services and slices that are not for a proxy, each with the reason. */
  readonly ignored: readonly IgnoredObject[];
  /** All documents that were left alone: `ignored`, and those of other kinds. */
  readonly ignoredCount: number;
}

/** Never rejects: a path that does not exist is one of the problems. */
export async function loadManifests(
  paths: readonly string[],
  options: ReadingOptions = {},
): Promise<Manifests> {
  const { world, problems, ignored, otherKinds } = await new ManifestStore(paths, options).refresh();
  return { ...byKind(world), problems, ignored, ignoredCount: ignored.length + otherKinds };
}

/** The same for standard input. */
export async function readManifestStream(
  stream: AsyncIterable<Buffer>,
  name: string,
  options: ReadingOptions = {},
): Promise<Manifests> {
  const content = await readStream(stream);
  if (content.kind === 'text') return parseManifests(content.text, name, options);
  const problems = [contentProblem(name, content)];
  return { services: [], slices: [], nodes: [], problems, ignored: [], ignoredCount: 0 };
}

/** The same for one text; `name` stands for the file in problems. */
export function parseManifests(text: string, name = 'text', options: ReadingOptions = {}): Manifests {
  const reading = readManifest(name, text, undefined, options);
  const { inForce, duplicates } = resolve([reading], new Map());
  const ignored = ignoredObjects(reading);
  const ignoredCount = ignored.length + reading.otherKinds;
  return {
    ...byKind(worldOf(inForce)),
    problems: [...reading.problems, ...duplicates],
    ignored,
    ignoredCount,
  };
}

function byKind(world: World): Pick<Manifests, 'services' | 'slices' | 'nodes'> {
  const services: Service[] = [];
  const slices: EndpointSlice[] = [];
  const nodes: Node[] = [];
  for (const object of world.values()) {
    if (object.kind === 'Service') services.push(object.value);
    else if (object.kind === 'EndpointSlice') slices.push(object.value);
    else nodes.push(object.value);
  }
  return { services, slices, nodes };
}
