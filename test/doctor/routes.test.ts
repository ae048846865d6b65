import { describe, expect, test } from 'vitest';
import type { RouteLook } from '../../src/doctor/machine.ts';
import { checkRoutes, type SampledEndpoint } from '../../src/doctor/routes.ts';
import type { Ip } from '../../src/model/ip.ts';
import { codesOf, fakeMachine, groupOf } from './fakeMachine.ts';

const endpoint = (ip: string, node: string | undefined, isLocal = false): SampledEndpoint => ({
  ip: ip as Ip,
  port: 8080,
  service: 'shop/web',
  node,
  isLocal,
});
const found = (outLink: number, gateway?: string): RouteLook => ({
  state: 'found',
  outLink,
  gateway: gateway as Ip | undefined,
  isLocal: false,
});
const DEFAULT = found(2, '192.168.100.254');
const look = (endpoints: readonly SampledEndpoint[], routes: Readonly<Record<string, RouteLook>>) =>
  groupOf((group) =>
    checkRoutes(group, fakeMachine({ routes: { '198.51.100.1': DEFAULT, ...routes } }), endpoints),
  );

describe('routes to endpoints', () => {
  test('one of each node is asked for', async () => {
    const group = await look(
      [
        endpoint('10.244.1.11', 'node1', true),
        endpoint('10.244.2.11', 'node2'),
        endpoint('10.244.2.12', 'node2'),
      ],
      { '10.244.1.11': found(3), '10.244.2.11': found(2, '192.168.100.3') },
    );
    expect(codesOf(group)).toEqual([]);
    expect(group.fine).toEqual(['2 of 2 endpoints asked for have a route']);
  });

  test.each([
    ['ENETUNREACH', 'there is no route'],
    ['EHOSTUNREACH', 'the route says unreachable'],
    ['EINVAL', 'the route says blackhole'],
    ['EACCES', 'the route says prohibit'],
  ])('%s: %s', async (errno, words) => {
    const group = await look([endpoint('10.244.2.11', 'node2')], {
      '10.244.2.11': { state: 'refused', errno },
    });
    expect(codesOf(group)).toEqual(['error no-route-to-endpoint']);
    expect(group.findings[0]?.evidence).toBe(`ip route get 10.244.2.11: ${words} (${errno})`);
    expect(group.findings[0]?.text).toBe('no route to the endpoint 10.244.2.11:8080 of shop/web on node2');
  });

  test('a local pod must not be behind the default gateway', async () => {
    const group = await look([endpoint('10.244.1.11', 'node1', true)], { '10.244.1.11': DEFAULT });
    expect(codesOf(group)).toEqual(['error local-endpoint-by-default-route']);
  });

  test('a cluster without endpoints', async () => {
    expect((await look([], {})).notEvaluated).toEqual(['routes to endpoints: no endpoints are known']);
  });
});
