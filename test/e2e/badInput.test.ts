import { describe, expect, test } from 'vitest';
import type { Host } from '../../lab/host.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon, eventually } from './daemon.ts';
import { useInLab } from './support/use.ts';
import { manifests } from './cluster.ts';

const GOOD = '10.96.1.1';

/** Text that would do harm if it reached a shell, a restore or a log unchecked. */
const POISON = [
  'x -j ACCEPT',
  'x"\n-A INPUT -j DROP\nCOMMIT\n*nat\n',
  "x'; touch /tmp/junction-was-here; '",
  '$(touch /tmp/junction-was-here)',
  'x\u0000y',
  'x\\',
  '"',
  '\u202ereversed',
  'ÄÖÜ',
  '',
  '-A',
  'a'.repeat(10_000),
];

/** One object per field and poison: a service with slices that are otherwise sound. */
function hostile(): readonly object[] {
  const service = (index: number, metadata: object, spec: object): object => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: `bad-${index}`, namespace: 'shop', ...metadata },
    spec: { clusterIP: '10.96.7.7', ports: [{ name: 'http', port: 80, protocol: 'TCP' }], ...spec },
  });
  const slice = (index: number, metadata: object, rest: object): object => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `bad-${index}`,
      namespace: 'shop',
      labels: { 'kubernetes.io/service-name': 'api' },
      ...metadata,
    },
    addressType: 'IPv4',
    ports: [{ name: 'other', port: 8080, protocol: 'TCP' }],
    endpoints: [{ addresses: ['10.244.1.12'] }],
    ...rest,
  });
  const texts = POISON.flatMap((poison, index) => [
    service(index, { name: poison }, {}),
    service(index, { namespace: poison }, {}),
    service(index, {}, { clusterIP: poison }),
    service(index, {}, { ports: [{ name: poison, port: 80 }] }),
    service(index, {}, { ports: [{ name: 'http', port: 80, protocol: poison }] }),
    service(index, {}, { ports: [{ name: 'http', port: poison }] }),
    service(index, {}, { externalIPs: [poison] }),
    service(index, {}, { type: 'LoadBalancer', loadBalancerSourceRanges: [poison] }),
    service(index, {}, { sessionAffinity: poison }),
    service(index, {}, { externalTrafficPolicy: poison }),
    slice(index, { name: poison }, {}),
    slice(index, { labels: { 'kubernetes.io/service-name': poison } }, {}),
    slice(index, {}, { addressType: poison }),
    slice(index, {}, { ports: [{ name: poison, port: 8080 }] }),
    slice(index, {}, { endpoints: [{ addresses: [poison], nodeName: poison, zone: poison }] }),
  ]);
  const numbers = [0, -1, 65_536, 1.5, 1e300, null, true, [], {}].flatMap((value, index) => [
    service(100 + index, {}, { ports: [{ name: 'http', port: value }] }),
    service(100 + index, {}, { ports: [{ name: 'http', port: 80, nodePort: value }] }),
    service(100 + index, {}, { clusterIP: value }),
    service(100 + index, {}, { ports: value }),
    slice(100 + index, {}, { ports: [{ name: 'other', port: value }] }),
    slice(100 + index, {}, { endpoints: value }),
  ]);
  return [...texts, ...numbers];
}

describe('hostile manifests beside a sound one', () => {
  const lab = useLab();
  const daemonOf = useInLab(() => Daemon.create(lab().host('node1')));

  test('the sound service is served as if it were alone, and nothing else is written', async () => {
    const daemon = daemonOf();
    const node = lab().host('node1');
    const sound = manifests([{ name: 'api', ip: GOOD, pods: 'ac' }]);
    await daemon.write(sound);
    await daemon.start();
    const alone = await servicesIn(node);

    const documents = hostile().map((object) => JSON.stringify(object));
    await daemon.write(`${sound}---\n${documents.join('\n---\n')}\n`);
    await eventually('the reports', () => (daemon.log.match(/: error: /g)?.length ?? 0) > 100);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => lab().host('client').request('tcp', GOOD, 80)),
    );
    expect(answers.filter(({ outcome }) => outcome !== 'answer')).toEqual([]);

    const now = await servicesIn(node);
    expect(now.filter((line) => !line.includes('shop/bad-'))).toEqual(alone);
    // Those of the hostile objects that turned out sound after all were served under their own, checked name.
    const others = now.filter((line) => line.includes('shop/bad-'));
    expect(
      others.filter((line) => !/--comment "(?:[^"\\]|\\.)*shop\/bad-\d+:http[^"\\]*"/.test(line)),
    ).toEqual([]);
    expect(daemon.log.split('\n').filter((line) => line !== '' && !/^[IWE]\d{4} /.test(line))).toEqual([]);
    expect((await node.exec(['test', '-e', '/tmp/junction-was-here'])).exitCode).toBe(1);
  });
});

/** Every rule that speaks of a service. */
async function servicesIn(node: Host): Promise<readonly string[]> {
  const text = await node.run(['iptables-save']);
  return text
    .split('\n')
    .filter((line) => line.includes('shop/'))
    .sort();
}
