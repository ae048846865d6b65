/** Clusters that are broken in one way each: real packets do not get through, and one `explain` names the cause and the cure. */
import { describe, expect, test } from 'vitest';
import type { Host } from '../../lab/host.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon } from './daemon.ts';
import { ask, expectCauseAndCure } from './support/asked.ts';
import { useInLab } from './support/use.ts';
import { manifests, nodeObject } from './cluster.ts';

interface Broken {
  readonly name: string;
  readonly manifest: string;
  /** What `explain` is asked. */
  readonly question: readonly string[];
  readonly exitCode: number;
  readonly cause: string | RegExp;
  readonly cure: string | RegExp;
  /** What becomes of the client's packet to an address; unset where it gets through, or nothing can be dialled. */
  readonly dialled?: {
    readonly address: string;
    readonly port?: number;
    readonly outcome: 'refused' | 'timeout';
  };
}

const NODE = '192.168.100.2';
const OUTSIDE = ['--from', 'outside', '--to'] as const;
const patched = (name: string, field: string): string =>
  `kubectl -n shop patch service ${name} -p '{"spec":{"${field}":"Cluster"}}'`;

const CASES: readonly Broken[] = [
  {
    name: 'no endpoints',
    manifest: manifests([{ name: 'none', ip: '10.96.3.1', pods: '' }]),
    question: ['shop/none'],
    exitCode: 3,
    cause: 'the EndpointSlices of shop/none are empty: its selector matches no pod',
    cure: 'kubectl -n shop get service none -o jsonpath={.spec.selector}',
    dialled: { address: '10.96.3.1', outcome: 'refused' },
  },
  {
    name: 'Local policy without local endpoints',
    manifest: manifests([
      { name: 'far', ip: '10.96.3.5', nodePort: 30_085, pods: 'cd', extra: '  externalTrafficPolicy: Local' },
    ]),
    question: [...OUTSIDE, `${NODE}:30085`],
    exitCode: 4,
    cause: 'externalTrafficPolicy is Local, and no endpoint of shop/far on node1 can serve',
    cure: patched('far', 'externalTrafficPolicy'),
    dialled: { address: NODE, port: 30_085, outcome: 'timeout' },
  },
  {
    name: 'source ranges without the client',
    manifest: manifests([
      {
        name: 'walled',
        ip: '10.96.3.7',
        nodePort: 30_087,
        pods: 'ac',
        extra: `  loadBalancerSourceRanges: [198.51.100.0/24]
status: {loadBalancer: {ingress: [{ip: 203.0.113.7}]}}`,
      },
    ]).replace('type: NodePort', 'type: LoadBalancer'),
    question: ['--from', '192.0.2.10', '--to', '203.0.113.7:80'],
    exitCode: 4,
    cause: 'loadBalancerSourceRanges 198.51.100.0/24 do not contain 192.0.2.10',
    cure: /kubectl -n shop patch service walled --type=json -p '.*192\.0\.2\.10\/32/,
    dialled: { address: '203.0.113.7', outcome: 'timeout' },
  },
  {
    name: "an external IP that is the node's",
    manifest: manifests([{ name: 'own', ip: '10.96.3.9', pods: 'ac', extra: `  externalIPs: [${NODE}]` }]),
    question: ['shop/own'],
    exitCode: 0,
    cause: `${NODE} is an address of this node too`,
    cure: 'kubectl -n shop edit service own',
  },
  {
    name: 'two services with one address',
    manifest: ['first', 'second']
      .map((name, index) =>
        manifests([
          { name, ip: `10.96.3.1${index}`, pods: 'ac', extra: '  externalIPs: [203.0.113.10]' },
        ]).replace(
          'namespace: shop}',
          `namespace: shop, creationTimestamp: '2026-01-0${index + 1}T00:00:00Z'}`,
        ),
      )
      .join('---\n'),
    question: ['shop/second'],
    exitCode: 0,
    cause: /203\.0\.113\.10:80\/TCP belongs to shop\/first/,
    cure: 'Give one of the two another address or port: kubectl -n shop edit service second',
  },
  {
    name: 'a headless service',
    manifest: manifests([{ name: 'headless', ip: 'None', pods: 'ac' }]),
    question: ['shop/headless'],
    exitCode: 6,
    cause: 'Service shop/headless is not served by this proxy: it is headless',
    cure: 'create it without clusterIP: None',
  },
  {
    name: 'endpoints of the other family',
    manifest: manifests([{ name: 'other', ip: '10.96.3.12', pods: 'ac' }])
      .replace('addressType: IPv4', 'addressType: IPv6')
      .replaceAll(/10\.244\.(\d)\.11/g, 'fd00:244:$1::11'),
    question: ['shop/other'],
    exitCode: 3,
    cause: 'shop/other has endpoints of the other address family only',
    cure: 'Have its pods get addresses of both families',
    dialled: { address: '10.96.3.12', outcome: 'refused' },
  },
];

/** Silence is waited for; a rejection comes within milliseconds. */
const LIMIT_MS = { refused: 15_000, timeout: 3000 };

describe('broken clusters', () => {
  const lab = useLab();
  const node = (): Host => lab().host('node1');
  const daemon = useInLab(async () => {
    const made = await Daemon.create(node());
    await made.write(
      [`${JSON.stringify(nodeObject())}\n`, ...CASES.map(({ manifest }) => manifest)].join('---\n'),
    );
    await made.start();
    return made;
  });

  test.each(CASES)('$name', async ({ question, exitCode, cause, cure, dialled }) => {
    if (dialled) {
      const { address, port = 80, outcome } = dialled;
      const client = lab().host('client');
      const seen = await client.request('tcp', address, port, { timeoutMs: LIMIT_MS[outcome] });
      expect(seen.outcome).toBe(outcome);
    }
    const answered = await ask(node(), 'explain', `--api-socket=${daemon().socket}`, ...question);
    expectCauseAndCure(answered, { cause, cure });
    expect(answered.exitCode).toBe(exitCode);
  });

  test('doctor lists every one of them', async () => {
    const answered = await ask(node(), 'doctor', `--api-socket=${daemon().socket}`);
    expect(answered.exitCode).toBe(1);
    for (const service of ['none', 'far', 'own', 'second', 'other'])
      expect(answered.text).toContain(`shop/${service}`);
    expect(answered.text).toMatch(/^packets +ok +the kernel does what is planned/m);
  });
});
