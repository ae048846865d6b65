/** Subjects of questions, made from manifests or from a proxy: no daemon, and a kernel only where one is given. */
import { objectKey } from '../../src/model/objects.ts';
import type { ModeName } from '../../src/model/mode.ts';
import { FAMILIES } from '../../src/model/ip.ts';
import type { KernelReader } from '../../src/modes/kernelRules.ts';
import { type Capacity, UNBOUNDED } from '../../src/plan/capacity.ts';
import type { Host } from '../../src/plan/decide.ts';
import type { ViewSettings } from '../../src/plan/view.ts';
import type { FamilySubject, Subject } from '../../src/explain/subject.ts';
import { Proxier } from '../../src/proxy/proxier.ts';
import { type Manifests } from '../../src/sources/manifests/source.ts';
import type { KubernetesObject } from '../scenarios/objects.ts';
import { NODE1, scenario, type ScenarioSettings } from '../scenarios/scenario.ts';

export interface Given {
  readonly manifests: Pick<Manifests, 'services' | 'slices' | 'nodes'>;
  readonly settings: ViewSettings;
  readonly host: Host;
  readonly mode?: ModeName;
  readonly layout?: string;
  readonly capacity?: Capacity;
}

/** A time that stands still. */
export const NOW = Date.parse('2026-05-01T12:00:00Z');

export function subjectOf(given: Given, more: Partial<Subject> = {}): Subject {
  const families = FAMILIES.map((family): FamilySubject => {
    const { settings, capacity = UNBOUNDED } = given;
    const proxy = new Proxier({ family, settings, writer: NO_WRITER, capacity });
    tell(proxy, given);
    proxy.replan();
    return familySubject(proxy, given.host);
  });
  return {
    nodeName: given.settings.nodeName,
    mode: given.mode ?? 'iptables',
    layout: given.layout ?? 'current',
    families,
    now: () => NOW,
    detectLocal: given.settings.detectLocal.mode,
    ...more,
  };
}

export function tell(proxy: Proxier, { manifests, settings }: Given): void {
  for (const service of manifests.services)
    proxy.onService(objectKey(service.namespace, service.name), service);
  for (const slice of manifests.slices) proxy.onEndpointSlice(objectKey(slice.namespace, slice.name), slice);
  proxy.onNode(manifests.nodes.find(({ name }) => name === settings.nodeName));
  proxy.onSynced();
}

export function familySubject(proxy: Proxier, host: Host, kernel?: KernelReader): FamilySubject {
  return {
    family: proxy.family,
    plan: proxy.plan,
    host,
    ...proxy.inputs,
    refused: new Map(),
    ...(kernel && { kernel }),
  };
}

const NO_WRITER = {
  sync: () => Promise.reject(new Error('nothing is written')),
  requestFull: (): void => {},
};

/** A cluster in few words, as the scenarios have it, on node1. */
export function clusterOf(
  objects: readonly KubernetesObject[],
  { settings, ...more }: ClusterOptions = {},
  facts: Partial<Subject> = {},
): Subject {
  const { manifests, settings: view } = scenario('asked', objects, '', settings);
  return subjectOf({ manifests, settings: view, host: NODE1, ...more }, facts);
}

/** The same, whose kernel is read so. */
export function readBy(
  subject: Subject,
  reader: Pick<KernelReader, 'walk'> & Partial<KernelReader>,
): Subject {
  const kernel: KernelReader = {
    compare: () => Promise.resolve([]),
    dump: () => Promise.resolve(undefined),
    ...reader,
  };
  return { ...subject, families: subject.families.map((family) => ({ ...family, kernel })) };
}

/** The same, of which the kernel has refused this. */
export function refusing(subject: Subject, servicePort: string, error = 'ENOSPC'): Subject {
  const refused = new Map([[servicePort, error]]);
  return { ...subject, families: subject.families.map((family) => ({ ...family, refused })) };
}

interface ClusterOptions extends Partial<Pick<Given, 'mode' | 'layout' | 'capacity' | 'host'>> {
  readonly settings?: ScenarioSettings;
}
