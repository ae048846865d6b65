/** What explain says of the frontend of a packet: who has it, and why it refuses or drops. */
import { describe, expect, test } from 'vitest';
import { type KubernetesObject, service, slice, slice6 } from '../scenarios/objects.ts';
import { clusterOf } from './given.ts';
import { ask, codesOf, leftOutOf, web } from './packets.ts';

describe('refused or dropped', () => {
  const BALANCED = {
    type: 'LoadBalancer',
    loadBalancerIPs: ['203.0.113.10'],
    sourceRanges: ['192.0.2.0/24'],
  } as const;

  test('by source ranges, with the field and where it would go', async () => {
    const subject = clusterOf(
      web(BALANCED, 'pod-a'),
      {},
      { locate: (object) => `web.yaml:${object.length}` },
    );
    const answer = await ask(subject, '198.18.0.10', '203.0.113.10:80');
    expect(answer).toMatchObject({
      verdict: 'dropped',
      reason: 'loadBalancerSourceRanges 192.0.2.0/24 do not contain 198.18.0.10',
      frontend: { kind: 'loadBalancerIP', service: 'default/web', policy: 'externalTrafficPolicy: Cluster' },
      endpoints: [],
      ifAllowed: { condition: 'if allowed', endpoints: [{ pod: 'pod-a', masquerade: true }] },
    });
    expect(answer.findings[0]).toMatchObject({
      code: 'source-not-allowed',
      severity: 'error',
      cure: `kubectl -n default patch service web --type=json -p '[{"op":"add","path":"/spec/loadBalancerSourceRanges/-","value":"198.18.0.10/32"}]'`,
      reference: {
        object: 'Service default/web',
        field: 'spec.loadBalancerSourceRanges',
        where: 'web.yaml:19',
      },
    });
  });

  test('for want of local endpoints', async () => {
    const subject = clusterOf(web({ type: 'NodePort', externalTrafficPolicy: 'Local' }, 'pod-c', 'pod-d'));
    const answer = await ask(subject, 'outside', '192.168.100.2:30080');
    expect(answer).toMatchObject({
      verdict: 'dropped',
      reason: 'externalTrafficPolicy is Local, and no endpoint of default/web on node1 can serve',
      ifAllowed: {
        condition: 'with externalTrafficPolicy: Cluster',
        endpoints: [{ pod: 'pod-c', probability: 0.5, masquerade: true }, { pod: 'pod-d' }],
      },
    });
    expect(answer.findings[0]).toMatchObject({
      code: 'no-local-endpoints',
      evidence: 'ready endpoints are on node2',
      cure: `kubectl -n default patch service web -p '{"spec":{"externalTrafficPolicy":"Cluster"}}'`,
    });
    expect(leftOutOf(answer)).toHaveLength(2);
  });

  test('for want of local endpoints at the cluster IP, which no other frontend needs', async () => {
    const subject = clusterOf(web({ ports: 'http=80', internalTrafficPolicy: 'Local' }, 'pod-c'));
    expect(await ask(subject, '10.244.1.12')).toMatchObject({
      verdict: 'dropped',
      findings: [{ code: 'no-local-endpoints' }],
      ifAllowed: {
        condition: 'with internalTrafficPolicy: Cluster',
        endpoints: [{ pod: 'pod-c', masquerade: false }],
      },
    });
  });

  test.each<readonly [string, readonly KubernetesObject[], string, RegExp]>([
    ['no slices', web({}), 'no-endpoints', /^no EndpointSlice belongs to default\/web/],
    [
      'empty slices',
      [...web({}), slice('web', 'http=80')],
      'no-endpoints',
      /^the EndpointSlices of default\/web are empty/,
    ],
    [
      'none ready',
      web({}, 'pod-a not-ready', 'pod-b terminated'),
      'none-ready',
      /^none of the 2 endpoints of default\/web is ready \(1 not ready, 1 terminating\)$/,
    ],
    [
      'one, not ready',
      web({}, 'pod-a not-ready'),
      'none-ready',
      /^the one endpoint of default\/web is not ready$/,
    ],
    [
      'no such port',
      [...web({}), slice('web', 'other=80', 'pod-a')],
      'no-such-port',
      /^no endpoint of default\/web has the TCP port http$/,
    ],
    [
      'the other family',
      [...web({}), slice6('web', 'http=80', 'pod-a')],
      'other-family',
      /^default\/web has endpoints of the other address family only$/,
    ],
  ])('%s', async (_, objects, code, text) => {
    const answer = await ask(clusterOf(objects), 'node');
    expect(answer.verdict).toBe('rejected');
    expect(answer.findings[0]).toMatchObject({
      code,
      severity: 'error',
      consequence: 'Connections are refused.',
    });
    expect(answer.findings[0]?.text).toMatch(text);
    expect(answer.findings[0]?.cure).toMatch(/kubectl -n default /);
    expect(answer.reason).toMatch(text);
  });

  test('where it would go with another policy, it says why it is masqueraded', async () => {
    const subject = clusterOf(web({ type: 'NodePort', externalTrafficPolicy: 'Local' }, 'pod-c'));
    const { ifAllowed } = await ask(subject, 'outside', '192.168.100.2:30080');
    expect(ifAllowed?.endpoints[0]?.masqueradeReason).toBe(
      'externalTrafficPolicy: Cluster: replies have to come back through this node',
    );
  });

  test('a service that changes between the plan and its inputs is asked for again', async () => {
    const subject = clusterOf(web({}, 'pod-a'));
    const families = subject.families.map((family) => ({ ...family, portsOf: () => [] }));
    await expect(ask({ ...subject, families }, 'node')).rejects.toThrow(
      'Service default/web changes just now',
    );
  });

  test('as the mode does it', async () => {
    const subject = clusterOf(web(BALANCED), { mode: 'nftables' });
    expect(await ask(subject, '198.18.0.10', '203.0.113.10:80')).toMatchObject({
      verdict: 'dropped',
      findings: [{ code: 'source-not-allowed' }, { code: 'no-endpoints' }],
      deviation:
        'in nftables mode source ranges are checked before the refusal for want of endpoints, as with kube-proxy',
    });
  });
});

describe('the frontend', () => {
  test('another service wants it too', async () => {
    const subject = clusterOf([
      service('old', {
        clusterIP: '10.96.1.2',
        externalIPs: ['203.0.113.5'],
        created: '2025-01-01T00:00:00Z',
      }),
      service('new', {
        clusterIP: '10.96.1.3',
        externalIPs: ['203.0.113.5'],
        created: '2026-01-01T00:00:00Z',
      }),
      slice('old', '8080', 'pod-a'),
    ]);
    const answer = await ask(subject, 'outside', '203.0.113.5:80');
    expect(answer.frontend).toMatchObject({ kind: 'externalIP', service: 'default/old' });
    expect(answer.findings).toMatchObject([
      {
        code: 'address-shared',
        text: 'default/new/TCP asked for this address and port too, and did not get it',
      },
    ]);
  });

  test('is an address of the node', async () => {
    const subject = clusterOf(web({ externalIPs: ['192.168.100.2'] }, 'pod-a'));
    expect(codesOf(await ask(subject, 'outside', '192.168.100.2:80'))).toEqual(['address-of-node']);
  });

  test('is refused by the kernel', async () => {
    const subject = clusterOf(web({}, 'pod-a'));
    const families = subject.families.map((family) => ({
      ...family,
      refused: new Map([['default/web:http/TCP', 'ENOSPC']]),
    }));
    expect((await ask({ ...subject, families }, 'node')).findings).toMatchObject([
      { code: 'refused-by-kernel', evidence: 'ENOSPC' },
    ]);
  });
});
