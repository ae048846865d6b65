/** Random things that happen to a node in every mode. */
import fc from 'fast-check';
import type { Ip } from '../../src/model/ip.ts';
import { anyServiceLine, anySliceLine } from '../plan/anyCluster.ts';
import { ip } from '../plan/given.ts';

const LINES: readonly fc.WeightedArbitrary<string>[] = [
  { weight: 4, arbitrary: anyServiceLine },
  { weight: 4, arbitrary: anySliceLine },
  {
    weight: 2,
    arbitrary: fc.constantFrom('a/x', 'a/y', 'b/z', 'a/x-1', 'a/y-1', 'b/z-1').map((path) => `- ${path}`),
  },
];

export interface SyncStep {
  readonly kind: 'sync';
  readonly lines: readonly string[];
}

export function syncStep(...moreLines: readonly fc.WeightedArbitrary<string>[]): fc.Arbitrary<SyncStep> {
  const line = fc.oneof(...LINES, ...moreLines);
  return fc.record({ kind: fc.constant('sync' as const), lines: fc.array(line, { maxLength: 4 }) });
}

export interface ZoneStep {
  readonly kind: 'zone';
  readonly zone: string;
}

export const zoneStep: fc.Arbitrary<ZoneStep> = fc.record({
  kind: fc.constant('zone' as const),
  zone: fc.constantFrom('a', 'b'),
});

export interface NodeIpsStep {
  readonly kind: 'nodeIps';
  readonly nodeIps: readonly Ip[];
}

/** 1.1.1.1 is also an external IP and a load balancer's. */
const ADDRESSES = [
  [ip('192.0.2.10'), ip('192.0.2.11')],
  [ip('192.0.2.10')],
  [ip('1.1.1.1'), ip('192.0.2.10')],
  [],
];

export const nodeIpsStep: fc.Arbitrary<NodeIpsStep> = fc.record({
  kind: fc.constant('nodeIps' as const),
  nodeIps: fc.constantFrom(...ADDRESSES),
});

/** Who is there after this step: another process after a restart. */
export function survivorOf<Harness extends { restarted(): Harness }>(
  harness: Harness,
  { kind }: { readonly kind: string },
): Harness {
  return kind === 'restart' ? harness.restarted() : harness;
}
