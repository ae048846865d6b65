/** What a scraper sees, held against what the kernel has. */
import { describe, expect, test } from 'vitest';
import { KUBERNETES_VERSION, VERSION } from '../../src/version.ts';
import { useLab } from '../lab/requireLab.ts';
import { type ParsedFamily, parseExposition } from '../telemetry/metrics/parse.ts';
import { Daemon } from './daemon.ts';
import { eventually } from './support/eventually.ts';
import { fetchFrom } from './support/fetch.ts';
import { expectAnswers } from './support/traffic.ts';
import { useInLab } from './support/use.ts';
import { manifests, type ServiceWords } from './cluster.ts';

const API = { name: 'api', ip: '10.96.1.1', ip6: 'fd00:96::1', nodePort: 30_080 };
const LOCAL = '  externalTrafficPolicy: Local\n  internalTrafficPolicy: Local';
const AFTER_THE_FIRST_SYNC = [
  'kubeproxy_sync_full_proxy_rules_duration_seconds',
  'kubeproxy_sync_proxy_rules_duration_seconds',
  'kubeproxy_sync_proxy_rules_endpoint_changes_pending',
  'kubeproxy_sync_proxy_rules_endpoint_changes_total',
  'kubeproxy_sync_proxy_rules_iptables_last',
  'kubeproxy_sync_proxy_rules_iptables_total',
  'kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds',
  'kubeproxy_sync_proxy_rules_last_timestamp_seconds',
  'kubeproxy_sync_proxy_rules_no_local_endpoints_total',
  'kubeproxy_sync_proxy_rules_service_changes_pending',
  'kubeproxy_sync_proxy_rules_service_changes_total',
];

describe('/metrics', () => {
  const lab = useLab();
  const daemon = useInLab(async () => {
    const made = await Daemon.create(lab().host('node1'), '--iptables-sync-period=1h');
    await made.write(manifests([{ ...API, pods: 'ac' }]));
    await made.start();
    return made;
  });

  async function scrape(): Promise<readonly ParsedFamily[]> {
    const { status, headers, body } = await fetchFrom(lab().host('node1'), 'http://127.0.0.1:10249/metrics');
    expect(status).toBe(200);
    expect(headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/);
    return parseExposition(body);
  }

  /** `ip_family="IPv4" 3` for each sample; of a histogram, the counts. */
  async function samplesOf(name: string): Promise<readonly string[]> {
    const family = (await scrape()).find((each) => each.name === `kubeproxy_${name}`);
    const samples = family?.samples ?? [];
    return samples
      .filter((sample) => family?.type !== 'histogram' || sample.name.endsWith('_count'))
      .map(({ labels, value }) => [...labels.map(([label, text]) => `${label}="${text}"`), value].join(' '));
  }

  async function expectSamples(name: string, expected: readonly string[]): Promise<void> {
    let last: readonly string[] = [];
    await eventually(
      () => `${name} ${expected.join()}; last: ${last.join()}`,
      async () => {
        last = await samplesOf(name);
        return last.join() === expected.join();
      },
    );
  }

  async function change(...services: readonly ServiceWords[]): Promise<void> {
    await daemon().write(manifests(services));
  }

  test('after a quiet start there is what the first sync brings, and no more', async () => {
    const names = (await scrape()).map(({ name }) => name).filter((name) => name.startsWith('kubeproxy_'));
    // Packets are counted where the kernel has nfacct.
    expect(names.filter((name) => !name.endsWith('_packets_total'))).toEqual(AFTER_THE_FIRST_SYNC);
    expect(await samplesOf('sync_proxy_rules_service_changes_total')).toEqual(['2']);
    expect(await samplesOf('sync_full_proxy_rules_duration_seconds')).toEqual([
      'ip_family="IPv4" 1',
      'ip_family="IPv6" 1',
    ]);
  });

  test('the process and its version', async () => {
    const samples = (await scrape()).flatMap((family) => family.samples);
    const [ours, theirs] = ['junction_build_info', 'kubernetes_build_info'].map(
      (wanted) => new Map(samples.find(({ name }) => name === wanted)?.labels),
    );
    expect([ours?.get('version'), ours?.get('node_version')]).toEqual([VERSION, process.version]);
    expect(theirs?.get('git_version')).toBe(`v${KUBERNETES_VERSION}+junction-${VERSION}`);
    const values = new Map(samples.map(({ name, value }) => [name, value]));
    const least = {
      process_resident_memory_bytes: 1e6,
      process_open_fds: 3,
      process_start_time_seconds: 1.7e9,
      process_cpu_seconds_total: 0.01,
      process_virtual_memory_max_bytes: 1e9,
      nodejs_eventloop_lag_seconds: 0,
    };
    const tooSmall = Object.entries(least).filter(([name, value]) => !((values.get(name) ?? -1) >= value));
    expect(tooSmall).toEqual([]);
  });

  test('a change is a partial sync', async () => {
    await change({ ...API, pods: 'acd' });
    await expectAnswers(lab().host('client'), API.ip, 'pod-a pod-c pod-d');
    await expectSamples('sync_partial_proxy_rules_duration_seconds', [
      'ip_family="IPv4" 1',
      'ip_family="IPv6" 1',
    ]);
    expect(await samplesOf('sync_proxy_rules_endpoint_changes_total')).toEqual(['4']);
    expect(await samplesOf('sync_proxy_rules_endpoint_changes_pending')).toEqual(['0']);
  });

  test('probes are counted', async () => {
    const node = lab().host('node1');
    await fetchFrom(node, 'http://127.0.0.1:10256/healthz');
    await fetchFrom(node, 'http://127.0.0.1:10256/healthz');
    await fetchFrom(node, 'http://127.0.0.1:10256/livez');
    expect(await samplesOf('proxy_healthz_total')).toEqual(['code="200" 2']);
    expect(await samplesOf('proxy_livez_total')).toEqual(['code="200" 1']);
  });

  test('services that want local endpoints and have none', async () => {
    await change({ ...API, extra: LOCAL, pods: 'cd' });
    await expectSamples('sync_proxy_rules_no_local_endpoints_total', [
      'ip_family="IPv4" traffic_policy="external" 1',
      'ip_family="IPv4" traffic_policy="internal" 1',
      'ip_family="IPv6" traffic_policy="external" 1',
      'ip_family="IPv6" traffic_policy="internal" 1',
    ]);
  });

  test('how long a change took from the controller to the kernel', async () => {
    const trigger = `annotations: {endpoints.kubernetes.io/last-change-trigger-time: '${new Date().toISOString()}'}`;
    const text = manifests([{ ...API, pods: 'bd' }]);
    await daemon().write(text.replace('labels: {kubernetes.io', `${trigger}, labels: {kubernetes.io`));
    await expectSamples('network_programming_duration_seconds', ['ip_family="IPv4" 1']);
  });

  test('as many rules as it says are in its chains in the kernel', async () => {
    await change(
      { ...API, extra: LOCAL, pods: 'abcd' },
      { name: 'idle', ip: '10.96.1.2', pods: '' },
      { name: 'web', ip: '10.96.1.3', pods: 'ab' },
    );
    await expectAnswers(lab().host('client'), '10.96.1.3', 'pod-a pod-b');
    expect(await samplesOf('sync_proxy_rules_iptables_total')).toHaveLength(4);
    for (const [family, save] of [
      ['IPv4', 'iptables-save'],
      ['IPv6', 'ip6tables-save'],
    ]) {
      for (const table of ['filter', 'nat']) {
        let saved = '';
        const ours = async (): Promise<string> => {
          saved = await lab()
            .host('node1')
            .run([`${save}`, '-t', table]);
          const count = saved.split('\n').filter((line) => line.startsWith('-A KUBE-')).length;
          return `ip_family="${family}" table="${table}" ${count}`;
        };
        await eventually(
          () => `the number of ${saved}`,
          async () => (await samplesOf('sync_proxy_rules_iptables_total')).includes(await ours()),
        );
      }
    }
  });
});

describe('/metrics of the legacy variant, which nobody notifies', () => {
  const lab = useLab();
  const WEB = { name: 'web', ip: '10.96.1.3', pods: 'ab' };
  const daemon = useInLab(async () => {
    const flags = ['--iptables-variant=legacy', '--iptables-sync-period=1h'];
    const made = await Daemon.create(lab().host('node1'), ...flags);
    await made.write(manifests([{ ...API, pods: 'ac' }, WEB]));
    await made.start();
    return made;
  });

  test('a change that the kernel refuses is a failed partial sync, and a full one follows', async () => {
    const node = lab().host('node1');
    await node.run(['iptables-legacy', '-t', 'nat', '-F', 'KUBE-SERVICES']);
    // Its rule in that chain is to be deleted, and is gone.
    await daemon().write(manifests([{ ...API, pods: 'ac' }]));
    await expectAnswers(lab().host('client'), API.ip, 'pod-a pod-c');
    const failures =
      'kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total{ip_family="IPv4"} 1\n';
    await eventually(failures, async () =>
      (await fetchFrom(node, 'http://127.0.0.1:10249/metrics')).body.includes(failures),
    );
  });
});
