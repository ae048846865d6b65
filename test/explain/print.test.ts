/** Answers as people see them: aligned, within the terminal, and without anything that a terminal would obey. */
import { describe, expect, test } from 'vitest';
import { explainPackets } from '../../src/explain/packet.ts';
import { printPacket } from '../../src/explain/print.ts';
import { printService } from '../../src/explain/printService.ts';
import { explainService } from '../../src/explain/service.ts';
import type { Subject } from '../../src/explain/subject.ts';
import type { KernelReader, TraceStep } from '../../src/modes/kernelRules.ts';
import { loadManifests } from '../../src/sources/manifests/source.ts';
import { service, slice } from '../scenarios/objects.ts';
import { NODE1, scenario } from '../scenarios/scenario.ts';
import { clusterOf, NOW, readBy, refusing, subjectOf } from './given.ts';

const manifests = await loadManifests(['examples']);
const { settings } = scenario('examples', [], '');

function step(hook: string, chain: string, text: string, packets: number): TraceStep {
  return { hook, table: hook.split(' ')[0] ?? '', chain, ruleIndex: 0, text, found: [], packets };
}

const PATH = [
  step('nat prerouting', 'PREROUTING', '-j KUBE-SERVICES', 3000),
  step('nat prerouting', 'KUBE-SERVICES', '-d 203.0.113.10/32 -j KUBE-FW-67NZLRHBNDSAWJRO', 1204),
  step('nat prerouting', 'KUBE-FW-67NZLRHBNDSAWJRO', '-m comment --comment x', 1204),
  step('filter forward', 'FORWARD', '-j KUBE-PROXY-FIREWALL', 1204),
  step('filter forward', 'KUBE-PROXY-FIREWALL', '-d 203.0.113.10/32 -j DROP', 1204),
];
const DROP = {
  kind: 'drop',
  probability: 1,
  lookups: 0,
  learned: [],
  byAffinity: false,
  path: PATH,
} as const;
const examples = (walk: KernelReader['walk']): Subject =>
  readBy(subjectOf({ manifests, settings, host: NODE1 }, { locate: () => 'examples/web.yaml:19' }), { walk });
const DROPPED = examples(() => Promise.resolve({ outcomes: [DROP], notes: [] }));

const plain = (_: string, text: string): string => text;

async function printed(subject: Subject, from: string, to: string, columns = 80, isWide = false) {
  const answers = await explainPackets(subject, { from, to });
  const style = { paint: plain, columns, now: NOW + 40, isWide };
  return answers.map((each) => printPacket(each, style)).join('\n');
}

describe('a packet', () => {
  test('dropped, with the way through the kernel', async () => {
    const text = await printed(DROPPED, '198.18.0.10', '203.0.113.10:80', 100);
    expect(text.slice(text.indexOf('  in the kernel'))).toBe(
      `  in the kernel (iptables, read 40 ms ago: as planned)
             nat prerouting: KUBE-SERVICES → KUBE-FW-67NZLRHBNDSAWJRO → return (1,204 packets)
             filter forward: KUBE-PROXY-FIREWALL: DROP (1,204 packets)
  if allowed 10.244.1.11:8081 (pod-a, this node), client address kept
`,
    );
    const wide = await printed(DROPPED, '198.18.0.10', '203.0.113.10:80', 200, true);
    expect(wide).toContain('nat KUBE-FW-67NZLRHBNDSAWJRO: -m comment --comment x (1,204 packets)');
  });

  test('where the kernel does something else, on a narrow terminal', async () => {
    expect(await printed(DROPPED, 'pod/shop/pod-a', 'svc/shop/cart', 60)).toBe(
      `10.244.1.11 (shop/pod-a) →
10.96.0.40:80/TCP on node1       DROPPED, PLANNED: FORWARDED
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
  ✗ the rules in the kernel are not those that are planned
    evidence     planned: forwarded to 10.244.1.11:9090,
                 10.244.2.11:9090, 10.244.2.12:9090; kernel:
                 dropped by filter KUBE-PROXY-FIREWALL: -d
                 203.0.113.10/32 -j DROP
    cure         A running Junction repairs its rules, at once or within its sync period: ask again. If none runs, start it. What is missing: junction diff
  in the kernel (iptables, read 40 ms ago: NOT as planned)
  ✗ planned: forwarded to 10.244.1.11:9090,
    10.244.2.11:9090, 10.244.2.12:9090; kernel: dropped by
    filter KUBE-PROXY-FIREWALL: -d 203.0.113.10/32 -j DROP
             nat prerouting: KUBE-SERVICES →
             KUBE-FW-67NZLRHBNDSAWJRO → return (1,204
             packets)
             filter forward: KUBE-PROXY-FIREWALL: DROP
             (1,204 packets)
`,
    );
  });

  test('of which the rules could not be read', async () => {
    const subject = examples(() => Promise.reject(new Error('EPERM')));
    const text = await printed(subject, 'node', '10.96.0.10:80');
    expect(text).toContain('(iptables, read 40 ms ago: not evaluated)');
    expect(text).toContain('note       not evaluated: the rules could not be read: EPERM');
  });
});

describe('a terminal', () => {
  const ESCAPE = '\u001b';
  const change = {
    id: 1,
    family: 'IPv4',
    service: 'default/web',
    causes: [`${ESCAPE}[2J\nnew line`],
    effects: [],
    seenAt: NOW,
    plannedAt: NOW,
  } as const;
  const cluster = clusterOf(
    [service('web', { clusterIP: '10.96.1.1' }), slice('web', '80', 'pod-a', 'pod-c not-ready')],
    {},
    { locate: () => `${ESCAPE}]0;evil\u0007.yaml\u202e:1`, changesOf: () => [change] },
  );
  const families = cluster.families.map((family) => ({
    ...family,
    slicesOf: (key: string) =>
      family.slicesOf(key).map((each) => ({
        ...each,
        endpoints: each.endpoints.map((one) => ({ ...one, pod: `${ESCAPE}[31m${one.pod}\u2028` })),
      })),
  }));
  const hostile = refusing(
    readBy(
      { ...cluster, families },
      { walk: () => Promise.resolve({ outcomes: [], notes: [`${ESCAPE}c`] }) },
    ),
    'default/web/TCP',
    `${ESCAPE}[5mline\r\n2`,
  );

  test('gets nothing to obey', async () => {
    const style = { paint: plain, columns: 80, isWide: true };
    const texts = [
      await printed(hostile, 'node', 'svc/default/web', 80, true),
      printService(await explainService(hostile, { service: 'default/web' }), style),
    ];
    const lines = texts.flatMap((text) => text.split('\n'));
    expect(lines.filter((line) => /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(line))).toEqual([]);
    expect(texts.join('')).toContain('\\u001b[31mpod-a\\u2028');
  });

  test('gets colours where it wants them', async () => {
    const [answer] = await explainPackets(hostile, { from: 'node', to: 'svc/default/web' });
    if (!answer) throw new Error('no answer');
    const paint = (colour: string, inner: string): string => `<${colour}>${inner}</${colour}>`;
    const text = printPacket(answer, { paint, columns: 80 });
    expect(text).toMatch(/<green>[A-Z, :]+<\/green>/);
    expect(text.replaceAll(/<[a-z]+>|<\/[a-z]+>/g, '')).toBe(
      printPacket(answer, { paint: plain, columns: 80 }),
    );
  });

  test.each([60, 80, 120, Number.POSITIVE_INFINITY])(
    'of %d columns: only a command is longer',
    async (columns) => {
      const text = await printed(DROPPED, '198.18.0.10', '203.0.113.10:80', columns);
      expect(text.split('\n').filter((line) => line.length > columns && !/^ +cure /.test(line))).toEqual([]);
    },
  );
});
