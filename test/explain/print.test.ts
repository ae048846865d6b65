/** Answers as people see them: aligned, within the terminal, and without anything that a terminal would obey. */
import { describe, expect, test } from 'vitest';
import { explainPackets } from '../../src/explain/packet.ts';
import { printPacket } from '../../src/explain/print.ts';
import { printService } from '../../src/explain/printService.ts';
import { explainService } from '../../src/explain/service.ts';
import type { Subject } from '../../src/explain/subject.ts';
import type { KernelReader } from '../../src/modes/kernelReader.ts';
import type { TraceStep } from '../../src/modes/walk.ts';
import { loadManifests } from '../../src/sources/manifests/source.ts';
import { NODE1, scenario } from '../scenarios/scenario.ts';
import { service, slice } from '../scenarios/objects.ts';
import { clusterOf, NOW, subjectOf } from './given.ts';

const manifests = await loadManifests(['examples']);
const { settings } = scenario('examples', [], '');

function step(hook: string, chain: string, text: string, packets?: number): TraceStep {
  const [table = ''] = hook.split(' ');
  return { hook, table, chain, ruleIndex: 0, text, found: [], ...(packets !== undefined && { packets }) };
}

const DROPPED: KernelReader = {
  walk: () =>
    Promise.resolve({
      outcomes: [
        {
          kind: 'drop',
          probability: 1,
          lookups: 0,
          learned: [],
          byAffinity: false,
          path: [
            step('nat prerouting', 'PREROUTING', '-j KUBE-SERVICES', 3000),
            step('nat prerouting', 'KUBE-SERVICES', '-d 203.0.113.10/32 -j KUBE-FW-67NZLRHBNDSAWJRO', 1204),
            step('nat prerouting', 'KUBE-FW-67NZLRHBNDSAWJRO', '-m comment --comment x', 1204),
            step('filter forward', 'FORWARD', '-j KUBE-PROXY-FIREWALL', 1204),
            step('filter forward', 'KUBE-PROXY-FIREWALL', '-d 203.0.113.10/32 -j DROP', 1204),
          ],
        },
      ],
      notes: [],
    }),
  compare: () => Promise.resolve([]),
  dump: () => Promise.resolve(undefined),
};

function examples(kernel?: KernelReader): Subject {
  const subject = subjectOf({ manifests, settings, host: NODE1 }, { locate: () => 'examples/web.yaml:19' });
  return {
    ...subject,
    families: subject.families.map((family) => ({ ...family, ...(kernel && { kernel }) })),
  };
}

const plain = (_: string, text: string): string => text;

async function printed(
  subject: Subject,
  from: string,
  to: string,
  columns = 80,
  isWide = false,
): Promise<string> {
  const answers = await explainPackets(subject, { from, to });
  return answers
    .map((each) => printPacket(each, { paint: plain, columns, now: NOW + 40, isWide }))
    .join('\n');
}

describe('a packet', () => {
  test('dropped, with the way through the kernel', async () => {
    expect(`\n${await printed(examples(DROPPED), '198.18.0.10', '203.0.113.10:80', 100)}`).toBe(`
198.18.0.10 → 203.0.113.10:80/TCP on node1                                                   DROPPED
  frontend   load-balancer IP of shop/web:http                          externalTrafficPolicy: Local
  also at    cluster IP 10.96.0.20:80, node port 30020
  source     outside (not in --cluster-cidr 10.244.0.0/16, no address of this node)
  ✗ loadBalancerSourceRanges 192.0.2.0/24, 192.168.100.0/24, 10.244.0.0/16 do not contain
    198.18.0.10
    examples/web.yaml:19
    cure         kubectl -n shop patch service web --type=json -p '[{"op":"add","path":"/spec/loadBalancerSourceRanges/-","value":"198.18.0.10/32"}]'
  in the kernel (iptables, read 40 ms ago: as planned)
             nat prerouting: KUBE-SERVICES → KUBE-FW-67NZLRHBNDSAWJRO → return (1,204 packets)
             filter forward: KUBE-PROXY-FIREWALL: DROP (1,204 packets)
  if allowed 10.244.1.11:8081 (pod-a, this node), client address kept
`);
  });

  test('forwarded, on a narrow terminal', async () => {
    expect(`\n${await printed(examples(), 'pod/shop/pod-a', 'svc/shop/cart', 60)}`).toBe(`
10.244.1.11 (shop/pod-a) → 10.96.0.40:80/TCP on
node1                                              FORWARDED
  frontend   cluster IP of shop/cart:http
             internalTrafficPolicy: Cluster
  source     pod (in --cluster-cidr 10.244.0.0/16)
  affinity   a client stays with its endpoint for 10,800 s
  endpoints  3 endpoints
    33 %  10.244.1.11:9090  pod-a, this node
        masqueraded: it dials itself (hairpin), and would
        answer itself directly
    33 %  10.244.2.11:9090  pod-c, node2
        client address kept: the source is in the pod
        network
    33 %  10.244.2.12:9090  pod-d, node2
        client address kept: the source is in the pod
        network
`);
  });

  test('where the kernel does something else', async () => {
    const text = await printed(examples(DROPPED), 'node', '10.96.0.10:80');
    expect(text).toContain('DROPPED, PLANNED: FORWARDED');
    expect(text).toContain('(iptables, read 40 ms ago: NOT as planned)');
    expect(text).toContain('✗ planned: forwarded to 10.244.1.11:8080');
  });

  test('every rule, where that is wanted', async () => {
    const text = await printed(examples(DROPPED), '198.18.0.10', '203.0.113.10:80', 200, true);
    expect(text).toContain(
      'nat prerouting: nat KUBE-FW-67NZLRHBNDSAWJRO: -m comment --comment x (1,204 packets)',
    );
    expect(text).toContain('consequence');
  });

  test('of which the rules could not be read', async () => {
    const text = await printed(
      examples({ ...DROPPED, walk: () => Promise.reject(new Error('EPERM')) }),
      'node',
      '10.96.0.10:80',
    );
    expect(text).toContain('(iptables, read 40 ms ago: not evaluated)');
    expect(text).toContain('note       not evaluated: the rules could not be read: EPERM');
  });
});

test('a service', async () => {
  const subject = {
    ...examples(),
    changesOf: () => [CHANGE],
  };
  const answer = await explainService(subject, { service: 'shop/web' });
  expect(`\n${printService(answer, { paint: plain, columns: 100 })}`).toBe(`
shop/web (LoadBalancer) on node1, iptables mode                                                   OK
  sources    pod: in --cluster-cidr 10.244.0.0/16
             node: an address of this node
             outside: not in --cluster-cidr 10.244.0.0/16, no address of this node

shop/web:http/TCP, IPv4                                                                           ok
  cluster IP 10.96.0.20:80          internalTrafficPolicy: Cluster
    pod            forwarded to 2 endpoints, 50 % each, client address kept
    node, outside  forwarded to 2 endpoints, 50 % each, masqueraded
  load-balancer IP 203.0.113.10:80  externalTrafficPolicy: Local
    pod                     forwarded to 2 endpoints, 50 % each, client address kept
    node                    forwarded to 2 endpoints, 50 % each, masqueraded
    outside (198.51.100.1)  dropped: not in loadBalancerSourceRanges
    outside (192.0.2.250)   forwarded to 10.244.1.11:8081, client address kept
  node port 192.168.100.2:30020     externalTrafficPolicy: Local
    pod      forwarded to 2 endpoints, 50 % each, client address kept
    node     forwarded to 2 endpoints, 50 % each, masqueraded
    outside  forwarded to 10.244.1.11:8081, client address kept
  endpoints  2 endpoints
    10.244.1.11:8081  pod-a, this node  ready, in cluster and local
    10.244.2.11:8081  pod-c, node2      ready, in cluster

last changes
  2026-05-01T12:00:00Z      IPv4: Service shop/web added; planned 1 ms later, committed 9 ms later
`);
});

const CHANGE = {
  id: 1,
  family: 'IPv4',
  service: 'shop/web',
  causes: ['Service shop/web added'],
  effects: [],
  seenAt: NOW,
  plannedAt: NOW + 1,
  committedAt: NOW + 9,
} as const;

describe('a terminal', () => {
  const ESCAPE = '\u001b';
  const hostile = clusterOf(
    [service('web', { clusterIP: '10.96.1.1' }), slice('web', '80', 'pod-a', 'pod-c not-ready')],
    {},
    {
      locate: () => `${ESCAPE}]0;evil\u0007.yaml\u202e:1`,
      changesOf: () => [{ ...CHANGE, causes: [`${ESCAPE}[2J\nnew line`] }],
    },
  );
  const families = hostile.families.map((family) => ({
    ...family,
    slicesOf: (key: string) =>
      family.slicesOf(key).map((each) => ({
        ...each,
        endpoints: each.endpoints.map((one) => ({ ...one, pod: `${ESCAPE}[31m${one.pod}\u2028` })),
      })),
    refused: new Map([['default/web/TCP', `${ESCAPE}[5mline\r\n2`]]),
    kernel: { ...DROPPED, walk: () => Promise.resolve({ outcomes: [], notes: [`${ESCAPE}c`] }) },
  }));
  const subject = { ...hostile, families };
  const CONTROL = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

  test('gets nothing to obey', async () => {
    const texts = [
      await printed(subject, 'node', 'svc/default/web', 80, true),
      printService(await explainService(subject, { service: 'default/web' }), {
        paint: plain,
        columns: 80,
        isWide: true,
      }),
    ];
    for (const text of texts) for (const line of text.split('\n')) expect(line).not.toMatch(CONTROL);
    expect(texts.join('')).toContain('\\u001b[31mpod-a\\u2028');
  });

  test('gets colours where it wants them', async () => {
    const [answer] = await explainPackets(subject, { from: 'node', to: 'svc/default/web' });
    if (!answer) throw new Error('no answer');
    const text = printPacket(answer, {
      paint: (colour, inner) => `<${colour}>${inner}</${colour}>`,
      columns: 80,
    });
    expect(text).toContain('<green>FORWARDED</green>');
    expect(text.replaceAll(/<[a-z]+>|<\/[a-z]+>/g, '')).toBe(
      printPacket(answer, { paint: plain, columns: 80 }),
    );
  });

  test.each([60, 80, 120, Number.POSITIVE_INFINITY])(
    'of %d columns: only a command is longer',
    async (columns) => {
      const text = await printed(examples(DROPPED), '198.18.0.10', '203.0.113.10:80', columns);
      const long = text.split('\n').filter((line) => line.length > columns && !/^ +cure /.test(line));
      expect(long).toEqual([]);
    },
  );
});
