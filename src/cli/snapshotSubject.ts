/** What questions are answered from where a snapshot is the source: that of the running proxy, or of a bundle. */
import { type NodeSnapshot, SnapshotReader } from '../bundle/snapshotReader.ts';
import type { ValidConfig } from '../config/effective.ts';
import { loadPrinted } from '../config/load.ts';
import { type Settings, toSettings } from '../config/settings.ts';
import { isValid, validate } from '../config/validate.ts';
import { JunctionError } from '../errors.ts';
import type { FamilySubject, Subject } from '../explain/subject.ts';
import type { SnapshotFamily, SnapshotHeader, SnapshotLine } from '../explain/snapshot.ts';
import type { Family } from '../model/ip.ts';
import type { KernelReader } from '../modes/kernelRules.ts';
import { askLines } from './localApi.ts';
import { planFamily } from './planInput.ts';

/** A snapshot of 30,000 services is 100 MB, which takes seconds. */
const LIMIT_MS = 120_000;

export async function liveSnapshot(socket: string): Promise<NodeSnapshot> {
  const reader = new SnapshotReader(socket);
  for await (const line of askLines<SnapshotLine>(socket, '/v1/snapshot', { timeoutMs: LIMIT_MS }))
    reader.take({ ...line });
  const snapshot = reader.finish();
  if (snapshot) return snapshot;
  throw new JunctionError(
    'LOCAL_API_MALFORMED',
    `${socket}: a snapshot without a header: ${reader.problem ?? 'none came'}`,
  );
}

/** The first line of a snapshot; the proxy makes no more of it. */
export async function liveHeader(socket: string): Promise<SnapshotHeader> {
  for await (const line of askLines<SnapshotLine>(socket, '/v1/snapshot')) {
    if (line.kind === 'header') return line;
    break;
  }
  throw new JunctionError('LOCAL_API_MALFORMED', `${socket}: a snapshot without a header`);
}

/** The configuration of the proxy that the snapshot is of. */
export function snapshotConfig({ config, node }: Pick<SnapshotHeader, 'config' | 'node'>): ValidConfig {
  const loaded = loadPrinted(config);
  if (!loaded.ok) throw unusable(loaded.problems);
  const named = { ...loaded.value, hostnameOverride: node };
  if (isValid(named)) return named;
  throw unusable(validate(named));
}

function unusable(problems: readonly string[]): JunctionError {
  const message = `the configuration in the snapshot cannot be used: ${problems.join('; ')}`;
  return new JunctionError('LOCAL_API_MALFORMED', message);
}

export function snapshotSettings(header: SnapshotHeader): Settings {
  const { apiServers } = header;
  return { ...toSettings(snapshotConfig(header), header.node), ...(apiServers && { apiServers }) };
}

export function snapshotSubject(
  snapshot: NodeSnapshot,
  readerOf: (family: Family) => KernelReader | undefined = () => undefined,
): Subject {
  const { header } = snapshot;
  const settings = snapshotSettings(header);
  return {
    nodeName: header.node,
    mode: header.mode,
    layout: settings.layout,
    families: header.families.map((family) =>
      familySubject(snapshot, settings, family, readerOf(family.family)),
    ),
    now: () => Date.now(),
    detectLocal: settings.detectLocal.mode,
    ...(header.serviceCidrs && { serviceCidrs: header.serviceCidrs }),
  };
}

function familySubject(
  snapshot: NodeSnapshot,
  settings: Settings,
  { family, addresses, refused }: SnapshotFamily,
  kernel: KernelReader | undefined,
): FamilySubject {
  const input = { ...snapshot, isCluster: false, serviceCidrs: [], ignored: [], places: new Map() };
  const { plan, inputs } = planFamily(family, settings, input);
  return {
    family,
    plan,
    host: { addresses },
    refused: new Map(refused.map(({ servicePort, error }) => [servicePort, error])),
    ...(kernel && { kernel }),
    ...inputs,
  };
}
