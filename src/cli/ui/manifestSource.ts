/** The page of manifests: planned as a node would plan them, and again when a file changes. */
import type { ParsedFlags } from '../../config/commandLine.ts';
import type { ValidConfig } from '../../config/effective.ts';
import { unservedInFiles } from '../../explain/unserved.ts';
import { objectKey } from '../../model/objects.ts';
import { ManifestSource } from '../../sources/manifests/source.ts';
import type { Manifests } from '../../sources/manifests/source.ts';
import { printSourceProblem, type Source, type SourceEvents } from '../../sources/source.ts';
import { printableLine } from '../../text/printable.ts';
import { loadValid, nodeSettings } from '../configuration.ts';
import type { Output } from '../output.ts';
import { isStandardInput, nodeNote, pathNames, readManifests } from '../planInput.ts';
import type { PagedRoutes, PageSource } from './pageSource.ts';
import { plannedRoutes } from './plannedApi.ts';
import { PlannedNode } from './plannedNode.ts';

type FileSource = Source & Pick<ManifestSource, 'problems' | 'ignored' | 'locate'>;

/** Longer than this, and people want to know what they wait for. */
const PROGRESS_MS = 2000;
/** Of one status. */
const MOST_PROBLEMS = 100;

export async function openManifests(
  parsed: ParsedFlags,
  output: Output,
  paged: PagedRoutes,
): Promise<PageSource> {
  const { config } = loadValid(parsed);
  const settings = nodeSettings(config);
  const node = new PlannedNode({
    settings,
    onProblem: (problem) => output.err(`${printSourceProblem(problem)}\n`),
  });
  const paths = config.junction.manifests ?? [];
  const isFixed = isStandardInput(config);
  const source = isFixed ? await readOnce(config, output) : new ManifestSource(paths);
  const progress = setTimeout(
    () => output.err(`${printableLine(`Reading ${pathNames(config)} …`)}\n`),
    PROGRESS_MS,
  );
  try {
    await source.start(node);
    await node.ready;
  } finally {
    clearTimeout(progress);
  }
  const note = nodeNote({ nodes: node.nodes, isCluster: false }, settings);
  if (note !== undefined) output.err(`${printableLine(note)}\n`);
  const routes = plannedRoutes({
    node,
    config,
    settings,
    source: () => ({
      kind: 'manifests',
      paths,
      problems: source.problems.slice(0, MOST_PROBLEMS).map(printSourceProblem),
    }),
    hasEvents: !isFixed,
    locate: (object) => source.locate(object),
    unserved: (service) => Promise.resolve(unservedInFiles(source, service)),
  });
  return {
    api: paged(routes),
    what: `${settings.nodeName}, as it would serve ${pathNames(config)}`,
    close: () => source.stop(),
  };
}

/** Standard input, which ends. */
async function readOnce(config: ValidConfig, output: Output): Promise<FileSource> {
  const manifests = await readManifests(config, output);
  const { problems, ignored, places } = manifests;
  return {
    problems,
    ignored,
    locate: (object) => places.get(object),
    start: (events) => {
      emitAll(manifests, events);
      return Promise.resolve();
    },
    stop: () => Promise.resolve(),
  };
}

function emitAll({ services, slices, nodes, problems }: Manifests, events: SourceEvents): void {
  for (const problem of problems) events.report(problem);
  for (const service of services) events.service(objectKey(service.namespace, service.name), service);
  for (const slice of slices) events.endpointSlice(objectKey(slice.namespace, slice.name), slice);
  for (const node of nodes) events.node(node.name, node);
  events.synced();
}
