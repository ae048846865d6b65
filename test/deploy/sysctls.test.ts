import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { countCpus } from '../../src/system/conntrackSysctls.ts';
import { requireLab } from '../lab/requireLab.ts';
import { at, type Data, listAt, merge, podOf, REQUIRED, ROOT, renderObjects } from './chart.ts';

const LOCALNET = 'net/ipv4/conf/all/route_localnet';
const FORWARD = 'net/ipv4/ip_forward';
const ESTABLISHED = 'net/netfilter/nf_conntrack_tcp_timeout_established';
const CLOSE_WAIT = 'net/netfilter/nf_conntrack_tcp_timeout_close_wait';
const MAX = 'net/netfilter/nf_conntrack_max';

const BEFORE = {
  [LOCALNET]: '0',
  [FORWARD]: '0',
  [ESTABLISHED]: '432000',
  [CLOSE_WAIT]: '60',
  [MAX]: '1000',
} as const;

/** The init container's program, in a namespace of its own, on files that stand for the node's /proc/sys. */
describe('the init container sets what the configuration asks for', () => {
  beforeEach((context) => requireLab(context));
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'junction-sysctls-'));
    for (const [name, value] of Object.entries(BEFORE)) {
      mkdirSync(dirname(join(folder, 'host', name)), { recursive: true });
      writeFileSync(join(folder, 'host', name), `${value}\n`);
    }
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** Started as kubelet starts it, but for where its files are; answers what is different afterwards. */
  function changes(values: Data, config?: string): Readonly<Record<string, string>> {
    const objects = renderObjects(merge(REQUIRED, merge({ config: CLIENT }, values)));
    const map = objects.find((object) => at(object, 'kind') === 'ConfigMap');
    const text = config ?? String(at(map, 'data', 'config.conf'));
    writeFileSync(join(folder, 'config.conf'), text.replaceAll('/var/lib/kube-proxy', folder));
    writeFileSync(join(folder, 'kubeconfig.conf'), KUBECONFIG);
    const args = listAt(at(podOf(objects), 'initContainers', 0), 'args').map((arg) =>
      String(arg)
        .replace('/var/lib/kube-proxy', folder)
        .replace('$(NODE_NAME)', 'node1')
        .replace('=/host', `=${join(folder, 'host')}`),
    );
    const program = [process.execPath, join(ROOT, 'bin/junction'), ...args];
    execFileSync('unshare', ['--net', '--', ...program], { stdio: 'pipe' });
    const after = Object.keys(BEFORE).map((name) => [
      name,
      readFileSync(join(folder, 'host', name), 'utf8').trim(),
    ]);
    return Object.fromEntries(after.filter(([name, value]) => Object(BEFORE)[name ?? ''] !== value));
  }

  const CLIENT = { clientConnection: { kubeconfig: '/var/lib/kube-proxy/kubeconfig.conf' } };
  const KUBECONFIG = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`;
  const existing = (rest: string): string => `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: /var/lib/kube-proxy/kubeconfig.conf}
${rest}
`;
  const max = Math.min(Math.max(32_768 * countCpus(), 131_072), 1_048_576);
  const CONNTRACK = {
    [ESTABLISHED]: '86400',
    [CLOSE_WAIT]: '3600',
    [MAX]: String(max),
  };

  test('as kube-proxy has it, by default', () => {
    expect(changes({})).toEqual({ ...CONNTRACK, [LOCALNET]: '1' });
  });

  test('without route_localnet in the nftables mode', () => {
    expect(changes({ config: { mode: 'nftables' } })).toEqual(CONNTRACK);
  });

  test("by another's ConfigMap, whatever the chart's own values are", () => {
    const quiet = `mode: iptables
iptables: {localhostNodePorts: false}
conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}`;
    expect(changes({ existingConfigMap: 'kube-proxy' }, existing(quiet))).toEqual({});
    const some =
      'mode: nftables\nconntrack: {maxPerCore: 0, tcpEstablishedTimeout: 2h0m0s, tcpCloseWaitTimeout: 0s}';
    expect(changes({ existingConfigMap: 'kube-proxy' }, existing(some))).toEqual({ [ESTABLISHED]: '7200' });
  });
});
