/** What of the configuration the nftables mode goes by, seen in the kernel and from outside. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { Host } from '../../lab/host.ts';
import { useLab } from '../lab/requireLab.ts';
import { parseExposition } from '../telemetry/metrics/parse.ts';
import { Configured, type Fields } from './support/configured.ts';
import { fetchFrom } from './support/fetch.ts';
import { named } from './support/nftTable.ts';
import { answerers, SOON_MS } from './support/traffic.ts';
import { useInLab } from './support/use.ts';
import { nodeObject } from './cluster.ts';

const API = { name: 'api', ip: '10.96.1.1', ip6: 'fd00:96::1', nodePort: 30_080, pods: 'ac' };
const MODE = { mode: 'nftables' };
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

  const table = async (family = 'ip'): Promise<string> =>
    node().run(['nft', await named(node(), `list table ${family} junction`)]);

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
