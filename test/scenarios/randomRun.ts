/** A proxy that is told random clusters, whatever it writes them with. */
import * as fc from 'fast-check';
import { expect } from 'vitest';
import { FAMILIES, type Family } from '../../src/model/ip.ts';
import { objectKey } from '../../src/model/objects.ts';
import type { Mechanism } from '../../src/modes/deviations.ts';
import type { Plan } from '../../src/plan/types.ts';
import type { ViewSettings } from '../../src/plan/view.ts';
import { type KernelWriter, Proxier } from '../../src/proxy/proxier.ts';
import { decided, insteadIn } from './expectations.ts';
import { printRow, type Subject } from './packets.ts';
import { nodeIn, type RandomCluster, type Slot, slot, SLOTS, zone } from './randomCluster.ts';
import { subjectsOf } from './randomPackets.ts';
import { numRuns } from '../support/randomCases.ts';

export const TIMEOUT = 300_000 + 4000 * numRuns;

export const family = fc.constantFrom(...FAMILIES);

type Change = Slot | { readonly zone: string | undefined };

const change: fc.Arbitrary<Change> = fc.oneof(
  { weight: 9, arbitrary: fc.nat(SLOTS - 1).chain((number) => slot(number)) },
  { weight: 1, arbitrary: zone.map((name) => ({ zone: name })) },
);
/** In rounds, with a sync after each. */
export const changes = fc.array(fc.array(change, { minLength: 1, maxLength: 3 }), {
  minLength: 1,
  maxLength: 6,
});

export interface RandomWorld {
  readonly family: Family;
  readonly settings: ViewSettings;
  readonly cluster: RandomCluster;
}

export async function startProxy(
  { family: ofFamily, settings, cluster }: RandomWorld,
  writer: KernelWriter,
): Promise<Proxier> {
  const proxy = new Proxier({ family: ofFamily, settings, writer });
  for (const each of cluster.slots) tellSlot(proxy, undefined, each);
  proxy.onNode(nodeIn(cluster.zone));
  proxy.onSynced();
  await syncAll(proxy);
  return proxy;
}

/** Answers what kind of sync it was. */
export async function syncAll(proxy: Proxier): Promise<string> {
  const outcome = await proxy.sync();
  if (!outcome) throw new Error('nothing was written');
  expect([...outcome.report.refused]).toEqual([]);
  return outcome.report.kind;
}

/** Tells the proxy, and answers how the cluster is now. */
export function tellChange(proxy: Proxier, now: RandomCluster, told: Change): RandomCluster {
  if (!('name' in told)) {
    proxy.onNode(nodeIn(told.zone));
    return { ...now, zone: told.zone };
  }
  tellSlot(
    proxy,
    now.slots.find(({ name }) => name === told.name),
    told,
  );
  return { ...now, slots: now.slots.map((each) => (each.name === told.name ? told : each)) };
}

function tellSlot(proxy: Proxier, before: Slot | undefined, after: Slot): void {
  proxy.onService(objectKey('default', after.name), after.service);
  for (const { namespace, name } of before?.slices ?? []) {
    if (!after.slices.some((slice) => slice.name === name))
      proxy.onEndpointSlice(objectKey(namespace, name), undefined);
  }
  for (const slice of after.slices) proxy.onEndpointSlice(objectKey(slice.namespace, slice.name), slice);
}

/** Packets that a mechanism treats otherwise than `decide`: what it does, and what that says. */
export async function disagreementsWith(
  plan: Plan,
  mechanism: Mechanism,
  walk: (subjects: readonly Subject[]) => Promise<readonly string[]>,
): Promise<readonly string[]> {
  const subjects = subjectsOf(plan);
  const walked = await walk(subjects);
  return subjects.flatMap((subject, index) => {
    const instead = insteadIn(mechanism, plan, subject);
    const expected = instead === undefined ? decided(plan, subject) : printRow(subject, instead);
    return walked[index] === expected ? [] : [`${walked[index]}, not ${expected}`];
  });
}
