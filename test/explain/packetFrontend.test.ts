/** What explain says of the frontend of a packet: who has it, and why it drops. */
import { expect, test } from 'vitest';
import { service, type ServiceFields, slice } from '../scenarios/objects.ts';
import { clusterOf, refusing } from './given.ts';
import { ask, codesOf, leftOutOf, web } from './packets.ts';

const RANGES: Partial<ServiceFields> = {
  type: 'LoadBalancer',
  loadBalancerIPs: ['203.0.113.10'],
  sourceRanges: ['192.0.2.0/24'],
};

test('dropped by source ranges, with the field and where it would go', async () => {
  const locate = (object: string) => `web.yaml:${object.length}`;
  const answer = await ask(clusterOf(web(RANGES, 'pod-a'), {}, { locate }), '198.18.0.10', '203.0.113.10:80');
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

test.each<readonly [Partial<ServiceFields>, string, string, boolean]>([
  [{ internalTrafficPolicy: 'Local' }, '10.244.1.12', '10.96.1.1:80', false],
  [{ type: 'NodePort', externalTrafficPolicy: 'Local' }, 'outside', '192.168.100.2:30080', true],
])('dropped for want of local endpoints: %j', async (fields, from, to, masquerade) => {
  const policy = Object.keys(fields).find((field) => field.endsWith('Policy'));
  const answer = await ask(clusterOf(web(fields, 'pod-c', 'pod-d')), from, to);
  expect(answer).toMatchObject({
    verdict: 'dropped',
    reason: `${policy} is Local, and no endpoint of default/web on node1 can serve`,
    ifAllowed: {
      condition: `with ${policy}: Cluster`,
      endpoints: [{ pod: 'pod-c', probability: 0.5, masquerade }, { pod: 'pod-d' }],
    },
  });
  expect(answer.findings[0]).toMatchObject({
    code: 'no-local-endpoints',
    evidence: 'ready endpoints are on node2',
    cure: `kubectl -n default patch service web -p '{"spec":{"${policy}":"Cluster"}}'`,
  });
  expect(leftOutOf(answer)).toHaveLength(2);
});

test('as the mode does it', async () => {
  const subject = clusterOf(web(RANGES), { mode: 'nftables' });
  expect(await ask(subject, '198.18.0.10', '203.0.113.10:80')).toMatchObject({
    verdict: 'dropped',
    findings: [{ code: 'source-not-allowed' }, { code: 'no-endpoints' }],
    deviation:
      'in nftables mode source ranges are checked before the refusal for want of endpoints, as with kube-proxy',
  });
});

test('a service that changes between the plan and its inputs is asked for again', async () => {
  const subject = clusterOf(web({}, 'pod-a'));
  const families = subject.families.map((family) => ({ ...family, portsOf: () => [] }));
  await expect(ask({ ...subject, families }, 'node')).rejects.toThrow('Service default/web changes just now');
});

test('another service wants it too; it is an address of the node; the kernel has refused it', async () => {
  const wanting = (name: string, clusterIP: string, year: number) =>
    service(name, { clusterIP, externalIPs: ['203.0.113.5'], created: `${year}-01-01T00:00:00Z` });
  const objects = [wanting('old', '10.96.1.2', 2025), wanting('new', '10.96.1.3', 2026)];
  const shared = await ask(
    clusterOf([...objects, slice('old', '8080', 'pod-a')]),
    'outside',
    '203.0.113.5:80',
  );
  expect(shared).toMatchObject({
    frontend: { kind: 'externalIP', service: 'default/old' },
    findings: [
      {
        code: 'address-shared',
        text: 'default/new/TCP asked for this address and port too, and did not get it',
      },
    ],
  });
  const ofNode = clusterOf(web({ externalIPs: ['192.168.100.2'] }, 'pod-a'));
  expect(codesOf(await ask(ofNode, 'outside', '192.168.100.2:80'))).toEqual(['address-of-node']);
  const refused = refusing(clusterOf(web({}, 'pod-a')), 'default/web:http/TCP');
  expect((await ask(refused, 'node')).findings).toMatchObject([
    { code: 'refused-by-kernel', evidence: 'ENOSPC' },
  ]);
});
