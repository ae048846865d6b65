/** Random things that happen to a node, and what must be true after each. */
import fc from 'fast-check';
import { expect } from 'vitest';
import { hostPort, type Ip } from '../../../../src/model/ip.ts';
import { ip, VIEW } from '../../../plan/given.ts';
import {
  type NodeIpsStep,
  nodeIpsStep,
  type SyncStep,
  syncStep,
  type ZoneStep,
  zoneStep,
} from '../../anySteps.ts';
import { FakeIpvsKernel } from './fakeKernel.ts';
import { DRAIN_LIMIT_MS, type Harness } from './harness.ts';

/** What somebody else does to what is ours. */
const TAMPERINGS = [
  'device',
  'broken device',
  'server',
  'entry',
  'address',
  'weight',
  'destination',
] as const;
type Tampering = (typeof TAMPERINGS)[number];

export type Step =
  | SyncStep
  | { readonly kind: 'full' }
  | { readonly kind: 'restart' }
  | { readonly kind: 'drain'; readonly afterMs: number }
  | ZoneStep
  | NodeIpsStep
  | { readonly kind: 'scheduler'; readonly scheduler: string }
  /** Noticed by a full sync at the latest. */
  | { readonly kind: 'tamper'; readonly what: Tampering; readonly which: number };

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 12, arbitrary: syncStep() },
  { weight: 1, arbitrary: fc.constant({ kind: 'full' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'restart' as const }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('drain' as const),
      afterMs: fc.constantFrom(0, 30_000, DRAIN_LIMIT_MS),
    }),
  },
  { weight: 1, arbitrary: zoneStep },
  { weight: 2, arbitrary: nodeIpsStep },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('scheduler' as const),
      scheduler: fc.constantFrom('rr', 'mh', 'rr'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('tamper' as const),
      what: fc.constantFrom(...TAMPERINGS),
      which: fc.nat(50),
    }),
  },
);

export const anySteps: fc.Arbitrary<readonly Step[]> = fc.array(anyStep, { minLength: 1, maxLength: 12 });

export async function perform(harness: Harness, step: Step): Promise<void> {
  switch (step.kind) {
    case 'zone':
      harness.cluster.setView({ ...VIEW, zone: step.zone });
      break;
    case 'nodeIps':
      harness.settings = { ...harness.settings, nodeIps: step.nodeIps, nodePortIps: step.nodeIps };
      break;
    case 'scheduler':
      harness.settings = { ...harness.settings, scheduler: step.scheduler };
      break;
    case 'tamper':
      tamper(harness.kernel, step.what, step.which);
      break;
    case 'drain':
      await harness.drain(step.afterMs);
      break;
    case 'sync':
    case 'full':
    case 'restart':
      break;
  }
  if (step.kind === 'full' || step.kind === 'tamper') await harness.syncFull();
  else await harness.sync(...(step.kind === 'sync' ? step.lines : []));
}

function tamper(kernel: FakeIpvsKernel, what: Tampering, which: number): void {
  const pick = <T>(list: readonly T[]): T | undefined => list[which % Math.max(list.length, 1)];
  const server = pick([...kernel.servers.values()].filter(({ attributes }) => !isForeign(attributes.ip)));
  const destination = pick([...(server?.destinations.values() ?? [])]);
  switch (what) {
    case 'device':
      kernel.device = undefined;
      break;
    case 'broken device':
      if (kernel.device) kernel.device.isBroken = true;
      break;
    case 'server':
      if (server) kernel.tamper({ kind: 'deleteServer', server: server.attributes });
      break;
    case 'entry': {
      const [name, set] = pick([...kernel.sets].filter(([, { entries }]) => entries.size > 0)) ?? [];
      const entry = pick([...(set?.entries.values() ?? [])]);
      if (name?.startsWith('KUBE-') && entry) kernel.tamper({ kind: 'deleteEntry', set: name, entry });
      break;
    }
    case 'address':
      for (const each of [...(kernel.device?.addresses ?? [])].slice(which % 3))
        kernel.device?.addresses.delete(each);
      kernel.device?.addresses.add(ip('198.51.100.77'));
      break;
    case 'weight':
      if (destination) destination.weight = which;
      break;
    case 'destination': {
      const [address, port] = [ip('10.244.9.9'), which];
      const added = { ip: address, port, key: hostPort(address, port) };
      if (server && !server.destinations.has(added.key))
        kernel.tamper({ kind: 'newDestination', server: server.attributes, destination: added, weight: 2 });
      break;
    }
  }
}

const FOREIGN_IPS: readonly Ip[] = [ip('203.0.113.99'), ip('192.0.2.200')];

function isForeign(address: Ip): boolean {
  return FOREIGN_IPS.includes(address);
}

/** Somebody else uses sets and virtual servers of this machine too. */
export function withForeigners(): FakeIpvsKernel {
  const kernel = new FakeIpvsKernel();
  const destination = { ip: ip('203.0.113.5'), port: 80, key: '203.0.113.5:80' };
  kernel.tamper({ kind: 'createSet', set: 'OTHERS', type: 'hash:ip', capacity: 10 });
  kernel.tamper({ kind: 'addEntry', set: 'OTHERS', entry: { type: 'hash:ip', ip: ip('10.96.0.1') } });
  for (const address of FOREIGN_IPS) {
    const key = { protocol: 'TCP', ip: address, port: 80 } as const;
    const server = { ...key, scheduler: 'wrr', flags: 0, timeout: 0, clientPrefix: 32 };
    kernel.tamper({ kind: 'newServer', server }, { kind: 'newDestination', server, destination, weight: 7 });
  }
  return kernel;
}

export const FOREIGN_WORLD: readonly string[] = [
  'OTHERS 10.96.0.1',
  '-A -t 203.0.113.99:80 -s wrr',
  '-a -t 203.0.113.99:80 -r 203.0.113.5:80 -m -w 7',
  '-A -t 192.0.2.200:80 -s wrr',
  '-a -t 192.0.2.200:80 -r 203.0.113.5:80 -m -w 7',
];

/** Everything that is wanted is there, and what is more is TCP endpoints on their way out, or somebody else's. */
export async function expectServed(harness: Harness, foreign: readonly string[] = []): Promise<void> {
  const fresh = await harness.fromScratch();
  const isLeaving = (text: string): boolean => /^-a -t .* -w 0$/.test(text);
  expect(harness.rules).toEqual(fresh.rules);
  expect(harness.world.filter((text) => !isLeaving(text))).toEqual([...fresh.world, ...foreign].sort());
}

/** The same, and nothing is on its way out any more. */
export async function expectSettled(harness: Harness, foreign: readonly string[] = []): Promise<void> {
  await harness.endConnections();
  const fresh = await harness.fromScratch();
  expect(harness.isDraining).toBe(false);
  expect(harness.world).toEqual([...fresh.world, ...foreign].sort());
  expect(harness.rules).toEqual(fresh.rules);
  expect(harness.everything.sets.filter((text) => !text.includes('OTHERS'))).toEqual(fresh.sets);
}
