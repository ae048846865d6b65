/** The two sides of a comparison: plans from whatever source, each with the configuration that it is made by. */
import { type KernelDump, readBundle } from '../bundle/read.ts';
import type { NodeSnapshot } from '../bundle/snapshotReader.ts';
import { flagValue, parseCommandLine, type ParsedFlags } from '../config/commandLine.ts';
import { toV1alpha1, type ValidConfig } from '../config/effective.ts';
import { type Settings, toSettings } from '../config/settings.ts';
import type { FamilySubject, Subject } from '../explain/subject.ts';
import { type Family, familyOf, type Ip } from '../model/ip.ts';
import { type EndpointSlice, objectKey, type Service } from '../model/objects.ts';
import { printableLine } from '../text/printable.ts';
import { UsageError } from './commands.ts';
import { loadValid, nodeName } from './configuration.ts';
import type { Output } from './output.ts';
import { OWN_FLAGS } from './ownFlags.ts';
import {
  isNothing,
  nodeNote,
  nodeOf,
  pathNames,
  planFamily,
  type PlanInput,
  printProblems,
  readManifests,
} from './planInput.ts';
import type { QuestionSource } from './questionSource.ts';
import { liveSnapshot, snapshotConfig, snapshotSettings } from './snapshotSubject.ts';

export interface DiffInput {
  /** `the running proxy`; `manifests examples` */
  readonly name: string;
  readonly config: ValidConfig;
  readonly settings: Settings;
  readonly input: PlanInput;
  /** The node's own addresses, where they are known better than from its Node. */
  readonly addresses?: ReadonlyMap<Family, readonly Ip[]>;
  /** Of a bundle: what is in the kernel. */
  readonly kernel?: ReadonlyMap<Family, KernelDump>;
}

export async function openInput(
  source: QuestionSource,
  parsed: ParsedFlags,
  output: Output,
): Promise<DiffInput> {
  if (source.kind === 'live') return ofSnapshot('the running proxy', await liveSnapshot(source.socket));
  if (source.kind === 'bundle') {
    const bundle = await readBundle(source.file);
    return { ...ofSnapshot(`bundle ${source.file}`, bundle), kernel: bundle.kernel };
  }
  const { config: given } = loadValid(parsed);
  const kubeconfig = parsed.values.get('kubeconfig');
  const config = typeof kubeconfig === 'string' ? withKubeconfig(given, kubeconfig) : given;
  const settings = toSettings(config, nodeName(config));
  if (source.kind === 'kubeconfig') {
    const input = await readCluster(config, settings, output);
    return {
      name: `cluster of ${config.clientConnection.kubeconfig || config.master}`,
      config,
      settings,
      input,
    };
  }
  const input = await readFiles(config, settings, output);
  return { name: `manifests ${pathNames(config)}`, config, settings, input };
}

/** The same with what the flags `--to-…` say; `undefined`: there are none of them. */
export async function proposedInput(
  base: DiffInput,
  source: QuestionSource,
  parsed: ParsedFlags,
  output: Output,
): Promise<DiffInput | undefined> {
  const manifests = flagValue(parsed, OWN_FLAGS.toManifests);
  const kubeconfig = flagValue(parsed, OWN_FLAGS.toKubeconfig);
  const file = flagValue(parsed, OWN_FLAGS.toConfig);
  const mode = flagValue(parsed, OWN_FLAGS.toProxyMode);
  const node = flagValue(parsed, OWN_FLAGS.toHostname);
  if ([manifests, kubeconfig, file, mode, node].every((text) => text === '')) return undefined;
  if (manifests !== '' && kubeconfig !== '')
    throw new UsageError(['--to-manifests and --to-kubeconfig are two sources: name one of them']);
  const name = node === '' ? base.settings.nodeName : node;
  let config = file === '' ? base.config : configOfFile(file, name);
  if (mode !== '' && mode !== config.mode) config = withMode(config, mode, name);
  if (kubeconfig !== '') config = withKubeconfig(config, kubeconfig);
  if (manifests !== '')
    config = { ...config, junction: { ...config.junction, manifests: manifests.split(',') } };
  const settings: Settings = {
    ...toSettings(config, name),
    ...(base.settings.apiServers && { apiServers: base.settings.apiServers }),
  };
  const input =
    manifests !== ''
      ? withKept(await readFiles(config, settings, output), base, source)
      : kubeconfig === ''
        ? base.input
        : await readCluster(config, settings, output);
  const what = [
    ...(manifests === '' ? [] : [`manifests ${manifests}`]),
    ...(kubeconfig === '' ? [] : [`cluster of ${kubeconfig}`]),
    ...(file === '' ? [] : [`configuration ${file}`]),
    ...(manifests === '' && kubeconfig === '' && file === '' ? [base.name] : []),
  ];
  const isSameNode = name === base.settings.nodeName;
  const addresses = isSameNode && base.addresses ? { addresses: base.addresses } : {};
  return { name: what.join(', '), config, settings, input, ...addresses };
}

/**
 * Manifests take the place of manifests. Of a cluster they are a part: what they do not name stays as it is, as with
 * kubectl apply. The Node stays in either case.
 */
function withKept(input: PlanInput, { input: base, settings }: DiffInput, source: QuestionSource): PlanInput {
  const isNamed = nodeOf(input.nodes, settings.nodeName) !== undefined;
  const nodes = isNamed ? input.nodes : [...input.nodes, ...base.nodes];
  if (source.kind === 'manifests') return { ...input, nodes };
  return {
    ...input,
    services: overlaid(base.services, input.services),
    slices: overlaid(base.slices, input.slices),
    nodes,
    serviceCidrs: base.serviceCidrs,
  };
}

function overlaid<T extends Service | EndpointSlice>(base: readonly T[], others: readonly T[]): readonly T[] {
  const keyOf = ({ namespace, name }: T): string => objectKey(namespace, name);
  return [...new Map([...base, ...others].map((each) => [keyOf(each), each])).values()];
}

function ofSnapshot(name: string, snapshot: NodeSnapshot): DiffInput {
  const { header } = snapshot;
  return {
    name,
    config: snapshotConfig(header),
    settings: snapshotSettings(header),
    input: {
      ...snapshot,
      isCluster: false,
      serviceCidrs: header.serviceCidrs ?? [],
      ignored: [],
      places: new Map(),
    },
    addresses: new Map(header.families.map(({ family, addresses }) => [family, addresses])),
  };
}

function withKubeconfig(config: ValidConfig, kubeconfig: string): ValidConfig {
  return { ...config, clientConnection: { ...config.clientConnection, kubeconfig } };
}

function configOfFile(file: string, node: string): ValidConfig {
  const parsed = parseCommandLine([`--config=${file}`, `--hostname-override=${node}`]);
  if (!parsed.ok) throw new UsageError(parsed.problems);
  return loadValid(parsed.value).config;
}

/** As the file would be with another mode: what depends on the mode is filled in again. */
function withMode(config: ValidConfig, mode: ValidConfig['mode'], node: string): ValidConfig {
  const isDefaultOfNftables = config.mode === 'nftables' && config.nodePortAddresses?.join() === 'primary';
  const changed = {
    ...config,
    mode,
    nodePortAddresses: isDefaultOfNftables ? null : config.nodePortAddresses,
  };
  return snapshotConfig({ config: toV1alpha1(changed), node });
}

async function readFiles(config: ValidConfig, settings: Settings, output: Output): Promise<PlanInput> {
  const input = { ...(await readManifests(config, output)), isCluster: false, serviceCidrs: [] };
  return checked(input, settings, output, `in ${pathNames(config)}`);
}

async function readCluster(config: ValidConfig, settings: Settings, output: Output): Promise<PlanInput> {
  const cluster = await import('./clusterInput.ts');
  const input = await cluster.readCluster(config, settings.nodeName, output);
  return checked(input, settings, output, 'in the cluster');
}

function checked(input: PlanInput, settings: Settings, output: Output, where: string): PlanInput {
  printProblems(input, output, 'problems');
  if (isNothing(input)) throw new UsageError([`no Service, EndpointSlice, Endpoints or Node ${where}`]);
  const note = nodeNote(input, settings);
  if (note !== undefined) output.err(`${printableLine(note)}\n`);
  return input;
}

export function subjectOf(side: DiffInput, families: readonly Family[]): Subject {
  const { settings, input } = side;
  const { nodeName: node, mode, layout } = settings;
  return {
    nodeName: node,
    mode,
    layout,
    families: families.map((family) => familySubject(side, family)),
    now: () => Date.now(),
    detectLocal: settings.detectLocal.mode,
    ...(mode === 'nftables' && { serviceCidrs: input.serviceCidrs }),
  };
}

function familySubject({ settings, input, addresses }: DiffInput, family: Family): FamilySubject {
  const { plan, inputs } = planFamily(family, settings, input);
  const ofNode = (nodeOf(input.nodes, settings.nodeName)?.ips ?? []).filter((ip) => familyOf(ip) === family);
  return {
    family,
    plan,
    host: { addresses: addresses?.get(family) ?? ofNode },
    refused: new Map(),
    ...inputs,
  };
}
