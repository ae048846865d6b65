/** Stale flows of one large Service: what is looked at grows with its frontends, its endpoints and its flows, not their products. */
import { expect, test } from 'vitest';
import type { KernelFlow } from '../../src/netlink/conntrack.ts';
import type { Ip } from '../../src/model/ip.ts';
import { reviewAll, reviewChanges } from '../../src/plan/flows.ts';
import { growthOf, LINEAR } from '../support/operations.ts';
import { runToEnd } from '../../src/time/timeSlice.ts';
import { type Cluster, cluster } from './cluster.ts';
import { ip } from './given.ts';

const address = (net: string, index: number): Ip => ip(`${net}.${index >> 8}.${index & 255}`);
const addresses = (net: string, count: number): readonly Ip[] =>
  Array.from({ length: count }, (_, index) => address(net, index));

function service(size: number): string {
  return `x/large 10.96.0.1 53/udp@30053 ext=${addresses('172.20', size).join(',')}`;
}

function endpoints(size: number, from = 0): string {
  const all = addresses('10.1', size).slice(from);
  return `x/large-1 of large 5353/udp ${all.map((each) => `| ${each}`).join(' ')}`;
}

function large(size: number): Cluster {
  const made = cluster(`${service(size)}\n${endpoints(size)}`);
  made.replan();
  return made;
}

/** Flows to each frontend, some to an endpoint that is gone. */
function flows(size: number): readonly KernelFlow[] {
  return addresses('172.20', size).map((destination, id) => ({
    protocol: 'UDP',
    destination: id % 2 === 0 ? destination : address('192.168', id),
    destinationPort: id % 2 === 0 ? 53 : 30_053,
    answerer: address('10.1', id),
    answererPort: 5353,
    id,
    original: new Uint8Array(),
  }));
}

const CHANGES: readonly (readonly [string, (size: number) => string])[] = [
  ['an endpoint leaves', (size) => endpoints(size, 1)],
  ['all endpoints leave', (size) => endpoints(size, size)],
  ['all external IPs go', () => 'x/large 10.96.0.1 53/udp@30053'],
  ['it is deleted', () => '- x/large'],
];

test.each(CHANGES)('%s', async (_, change) => {
  const growth = await growthOf((size) => {
    const made = large(size);
    const changes = made.tell(change(size)).replan();
    expect(changes).not.toEqual([]);
    const [nodeIps, seen] = [addresses('192.168', size), flows(size)];
    return () => {
      const review = runToEnd(reviewChanges(changes, made.planner, nodeIps));
      expect(review.questions.length).toBeGreaterThanOrEqual(size);
      expect(seen.filter((flow) => review.isStale(flow))).not.toEqual([]);
    };
  });
  expect(growth).toBeLessThan(LINEAR);
});

test('everything is looked at', async () => {
  const growth = await growthOf((size) => {
    const { planner } = large(size);
    const seen = flows(size);
    return () => {
      const review = runToEnd(reviewAll([], planner, addresses('192.168', size)));
      for (const flow of seen) review.isStale(flow);
    };
  });
  expect(growth).toBeLessThan(LINEAR);
});
