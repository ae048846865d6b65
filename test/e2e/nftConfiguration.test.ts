/** What of the configuration the nftables mode goes by, seen in the kernel and from outside. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import type { Host } from '../../lab/host.ts';
import { useLab } from '../lab/requireLab.ts';
import { parseExposition } from '../telemetry/metrics/parse.ts';
import { Configured, type Fields } from './support/configured.ts';
import { fetchFrom } from './support/fetch.ts';
import { answerers, SOON_MS } from './support/traffic.ts';
import { useInLab } from './support/use.ts';
import { manifests, nodeObject, type ServiceWords } from './cluster.ts';

const API = { name: 'api', ip: '10.96.1.1', ip6: 'fd00:96::1', nodePort: 30_080, pods: 'ac' };
const MODE = { mode: 'nftables' };
const STICKY = '  sessionAffinity: ClientIP';
/** Of the section of another mode, which must not count. */
const DECOY = { iptables: { masqueradeBit: 3, masqueradeAll: false, syncPeriod: '7s' } };

const lab = useLab();
const node = (): Host => lab().host('node1');

describe('the nftables mode', () => {
  function usingConfig(fields: Fields): () => Configured {
    return useInLab(async () => {
      const made = await Configured.create(node(), [API]);
      await writeFile(join(made.manifests, 'node.yaml'), stringify(nodeObject()));
      await made.write({ ...MODE, ...DECOY, ...fields });
      await made.start();
      return made;
    });
  }

  const table = (family = 'ip'): Promise<string> => node().run(['nft', 'list', 'table', family, 'junction']);

  describe('with its defaults', () => {
    const configured = usingConfig({});

    test('node ports answer at the primary address of the node, and nowhere else', async () => {
      configured();
      expect(await answerers(lab().host('client'), '192.168.100.2', 30_080)).toBe('pod-a pod-c');
      expect(await answerers(lab().host('client'), '192.0.2.1', 30_080)).toBe('refused');
      expect(await table()).toMatch(/set node-port-ips \{[^}]*elements = \{ 192\.168\.100\.2 \}/);
      expect(await table('ip6')).toMatch(/set node-port-ips \{[^}]*elements = \{ fd00:100::2 \}/);
    });

    test('the mark is bit 14, whatever iptables has', async () => {
      expect(await table()).toContain('meta mark set meta mark | 0x00004000');
    });

    test('it says what it is, and is healthy', async () => {
      expect((await fetchFrom(node(), 'http://127.0.0.1:10249/proxyMode')).body).toBe('nftables');
      expect((await fetchFrom(node(), 'http://127.0.0.1:10256/healthz')).status).toBe(200);
      expect((await fetchFrom(node(), 'http://127.0.0.1:10256/livez')).status).toBe(200);
    });

    test('its metrics are of this mode', async () => {
      const { body } = await fetchFrom(node(), 'http://127.0.0.1:10249/metrics');
      const names = parseExposition(body).map(({ name }) => name);
      expect(names).toEqual(
        expect.arrayContaining([
          'kubeproxy_sync_proxy_rules_duration_seconds',
          'kubeproxy_sync_full_proxy_rules_duration_seconds',
          'kubeproxy_sync_proxy_rules_last_timestamp_seconds',
          'kubeproxy_sync_proxy_rules_no_local_endpoints_total',
        ]),
      );
      expect(names.filter((name) => /iptables|failures/.test(name))).toEqual([]);
    });
  });

  describe('with its own section', () => {
    const configured = usingConfig({
      nftables: { masqueradeBit: 5, masqueradeAll: true, syncPeriod: '50s', minSyncPeriod: '200ms' },
      nodePortAddresses: ['192.0.2.0/24'],
    });

    test('the mark, and masquerading everybody', async () => {
      configured();
      expect(await table()).toContain('meta mark set meta mark | 0x00000020');
      expect(await table()).toMatch(/set masquerade-always \{[^}]*10\.96\.1\.1 \. tcp \. 80/);
      expect(await lab().host('pod-b').request('tcp', '10.96.1.1', 80)).toMatchObject({
        outcome: 'answer',
        reply: { peer: expect.not.stringContaining('10.244.1.12') },
      });
    });

    test('node ports where they are asked for', async () => {
      expect(await answerers(lab().host('client'), '192.0.2.1', 30_080)).toBe('pod-a pod-c');
      expect(await answerers(lab().host('client'), '192.168.100.2', 30_080, SOON_MS)).not.toContain('pod');
    });

    test('the periods are live', async () => {
      const { body } = await fetchFrom(node(), 'http://127.0.0.1:10249/configz');
      expect(body).toMatch(/"SyncPeriod":"50s"/i);
      await configured().serve([{ ...API, pods: 'b' }]);
      expect(await answerers(lab().host('node1'), '10.96.1.1')).toBe('pod-b');
    });
  });
});

describe('nft list ruleset', () => {
  const KINDS: readonly ServiceWords[] = [
    { name: 'plain', ip: '10.96.2.1', ip6: 'fd00:96::21', pods: 'abcd' },
    { name: 'single', ip: '10.96.2.2', pods: 'a' },
    { name: 'empty', ip: '10.96.2.3', nodePort: 30_203, pods: '' },
    { name: 'sticky', ip: '10.96.2.4', ip6: 'fd00:96::24', nodePort: 30_204, extra: STICKY, pods: 'ab' },
    {
      name: 'local',
      ip: '10.96.2.5',
      ip6: 'fd00:96::25',
      nodePort: 30_205,
      extra: '  externalTrafficPolicy: Local\n  internalTrafficPolicy: Local\n  externalIPs: [198.51.100.5]',
      pods: 'cd',
    },
    {
      name: 'balanced',
      ip: '10.96.2.6',
      nodePort: 30_206,
      extra: `  externalTrafficPolicy: Local
  loadBalancerSourceRanges: [192.0.2.0/24, 10.0.0.0/8]
status: {loadBalancer: {ingress: [{ip: 203.0.113.6}]}}`,
      pods: 'abc',
    },
  ];

  /** Twenty endpoints, on any protocol. */
  function large(name: string, ip: string, protocol: string): string {
    const addresses = Array.from({ length: 20 }, (_, index) => `- {addresses: [10.244.9.${index + 1}]}`);
    const text = manifests([{ name, ip, nodePort: 30_300, pods: '', extra: STICKY }]);
    return text
      .replace('endpoints: []', `endpoints:\n${addresses.join('\n')}`)
      .replaceAll('protocol: TCP', `protocol: ${protocol}`);
  }

  test('prints services of every kind, each by its name', async () => {
    const made = await Configured.create(node(), []);
    onTestFinished(() => made.close());
    await made.serveText(
      [
        manifests(KINDS),
        large('large-tcp', '10.96.2.7', 'TCP'),
        large('large-udp', '10.96.2.8', 'UDP'),
        large('large-sctp', '10.96.2.9', 'SCTP'),
      ].join('---\n'),
    );
    await made.write({ ...MODE, nodePortAddresses: ['192.168.100.0/24', 'fd00:100::/64'] });
    await made.start();
    for (const address of ['10.96.2.4', 'fd00:96::24', '10.96.2.6'])
      await lab().host('pod-b').request('tcp', address, 80);
    const { exitCode, stdout, stderr } = await node().exec(['nft', 'list', 'ruleset']);
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(stdout).not.toMatch(/invalid|unknown|\[/);
    for (const name of [...KINDS.map((kind) => kind.name), 'large-tcp', 'large-udp', 'large-sctp'])
      expect(stdout).toContain(`comment "shop/${name}:http"`);
    expect(stdout).toMatch(/10\.244\.1\.12 \. 10\.96\.2\.4 \. 80 .*expires .* : 10\.244\.1\.1[12] \. 8080/);
  });
});
