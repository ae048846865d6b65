import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { EffectiveConfig } from '../../src/config/effective.ts';
import { loadConfig, nodeNameOf } from '../../src/config/load.ts';
import { FILE, fromFile, fromFlags, HEADER, load, parse } from './given.ts';

type Periods = Pick<EffectiveConfig, 'mode' | 'syncPeriodMs' | 'minSyncPeriodMs' | 'masqueradeAll'>;

function periods({ mode, syncPeriodMs, minSyncPeriodMs, masqueradeAll }: EffectiveConfig): Periods {
  return { mode, syncPeriodMs, minSyncPeriodMs, masqueradeAll };
}

describe('the one pair of sync periods, from flags', () => {
  test.each<[readonly string[], number, number]>([
    [[], 30_000, 1000],
    // The default came from the iptables section before the mode was known.
    [['--proxy-mode=ipvs'], 30_000, 1000],
    [['--iptables-sync-period=10s', '--iptables-min-sync-period=2s'], 10_000, 2000],
    [['--proxy-mode=nftables', '--iptables-sync-period=10s', '--iptables-min-sync-period=2s'], 10_000, 2000],
    [['--proxy-mode=ipvs', '--iptables-sync-period=10s', '--iptables-min-sync-period=2s'], 30_000, 1000],
    [['--proxy-mode=ipvs', '--ipvs-sync-period=10s', '--ipvs-min-sync-period=2s'], 10_000, 2000],
    [['--ipvs-sync-period=10s', '--ipvs-min-sync-period=2s'], 30_000, 1000],
    [['--proxy-mode=ipvs', '--ipvs-min-sync-period=0s'], 30_000, 0],
  ])('%j: %d and %d ms', (argv, syncPeriodMs, minSyncPeriodMs) => {
    expect(fromFlags(...argv)).toMatchObject({ syncPeriodMs, minSyncPeriodMs });
  });
});

describe('the one pair of sync periods, from a file', () => {
  const sections = {
    iptables: { syncPeriod: '1m', minSyncPeriod: '2s', masqueradeAll: true },
    ipvs: { syncPeriod: '3m', minSyncPeriod: '4s' },
    nftables: { syncPeriod: '5m', minSyncPeriod: '6s' },
  };

  test.each<[string, Periods]>([
    ['', { mode: 'iptables', syncPeriodMs: 60_000, minSyncPeriodMs: 2000, masqueradeAll: true }],
    ['iptables', { mode: 'iptables', syncPeriodMs: 60_000, minSyncPeriodMs: 2000, masqueradeAll: true }],
    ['ipvs', { mode: 'ipvs', syncPeriodMs: 180_000, minSyncPeriodMs: 4000, masqueradeAll: true }],
    ['nftables', { mode: 'nftables', syncPeriodMs: 300_000, minSyncPeriodMs: 6000, masqueradeAll: false }],
    ['other', { mode: 'other', syncPeriodMs: 60_000, minSyncPeriodMs: 2000, masqueradeAll: true }],
  ])('mode %j takes those of its section', (mode, expected) => {
    expect(periods(fromFile({ mode, ...sections }))).toEqual(expected);
  });

  test.each<[string, number]>([
    ['iptables', 1000],
    ['nftables', 1000],
    ['ipvs', 0],
  ])('mode %s has a minimum of %d ms by default', (mode, minSyncPeriodMs) => {
    expect(fromFile({ mode })).toMatchObject({ syncPeriodMs: 30_000, minSyncPeriodMs });
  });

  test('zero is as good as absent', () => {
    const zero = { syncPeriod: '0s', minSyncPeriod: '0s' };
    expect(fromFile({ iptables: zero })).toMatchObject({ syncPeriodMs: 30_000, minSyncPeriodMs: 1000 });
    expect(
      fromFile({ configSyncPeriod: '0s', clientConnection: { qps: 0, burst: 0, contentType: '' } }),
    ).toMatchObject({
      configSyncPeriod: 900_000,
      clientConnection: { qps: 5, burst: 10, contentType: 'application/vnd.kubernetes.protobuf' },
    });
  });

  test('zero is a value where Kubernetes has a pointer', () => {
    const config = fromFile({
      oomScoreAdj: 0,
      iptables: { masqueradeBit: 0, localhostNodePorts: false },
      nftables: { masqueradeBit: 0 },
      conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
    });
    expect(config).toMatchObject({
      oomScoreAdj: 0,
      iptables: { masqueradeBit: 0, localhostNodePorts: false },
      nftables: { masqueradeBit: 0 },
      conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0, tcpCloseWaitTimeout: 0 },
    });
  });
});

describe('a file and flags', () => {
  test('the file replaces the flags, which is logged', () => {
    const { config, notes } = load(
      ['--proxy-mode=ipvs', '--cluster-cidr=10.0.0.0/8', '--feature-gates=AllBeta=true', '--healthz-port=0'],
      stringify({ ...HEADER, mode: 'nftables' }),
    );
    expect(config).toMatchObject({
      mode: 'nftables',
      clusterCIDRs: [],
      featureGates: {},
      healthzBindAddress: '0.0.0.0:10256',
    });
    expect(notes).toContainEqual({
      severity: 'warning',
      message: 'Flags are ignored, because the configuration file replaces them',
      fields: { flags: ['--feature-gates', '--healthz-port', '--proxy-mode', '--cluster-cidr'] },
    });
  });

  test('flags for logging win when they are given', () => {
    const logging = { format: 'json', verbosity: 4, flushFrequency: '7s' };
    expect(fromFile({ logging }).logging).toMatchObject({
      format: 'json',
      verbosity: 4,
      flushFrequency: '7s',
    });
    expect(fromFile({ logging }, '-v=0', '--logging-format=text').logging).toMatchObject({
      format: 'text',
      verbosity: 0,
      flushFrequency: '7s',
    });
  });

  test('a file may ask for split streams without their gate, as kube-proxy lets it, in vain', () => {
    const options = { text: { splitStream: true } };
    const { config, notes } = load([], stringify({ ...HEADER, logging: { options } }));
    expect(config.logging.options.text.splitStream).toBe(false);
    expect(notes).toContainEqual({
      severity: 'warning',
      message: 'logging.options.text.splitStream has no effect without the feature gate LoggingAlphaOptions',
    });
  });

  test('vmodule of both is joined, the flag first', () => {
    const logging = { vmodule: [{ filePattern: 'file', verbosity: 1 }] };
    expect(fromFile({ logging }, '--vmodule=flag=2').logging.vmodule).toEqual([
      { filePattern: 'flag', verbosity: 2 },
      { filePattern: 'file', verbosity: 1 },
    ]);
  });

  test('--hostname-override wins when it is not empty', () => {
    expect(fromFile({ hostnameOverride: 'File' }, '--hostname-override=Flag').hostnameOverride).toBe('flag');
    expect(fromFile({ hostnameOverride: 'File' }, '--hostname-override=').hostnameOverride).toBe('File');
  });

  test("Junction's own flags win when they are given", () => {
    const junction = { manifests: ['a'], iptablesLayout: 'classic', firewalld: false, holdPorts: true };
    const defaults = {
      iptablesVariant: 'auto',
      ipvsDrainLimit: 0,
      nftablesCounters: false,
      nftablesProtection: 'auto',
      sysctlRoot: '/proc/sys',
      apiSocket: '/run/junction/junction.sock',
      apiSocketMode: '0600',
    };
    expect(fromFile({ junction }).junction).toEqual({ ...junction, ...defaults });
    expect(fromFile({ junction }, '--manifests=b', '--firewalld', '--hold-ports=false').junction).toEqual({
      manifests: ['b'],
      iptablesLayout: 'classic',
      ...defaults,
      firewalld: true,
      holdPorts: false,
    });
  });

  test('flags without a field work with a file', () => {
    const { config, invocation } = load(
      ['--master=https://10.0.0.1', '--write-config-to=out', '--cleanup', '--init-only'],
      stringify(HEADER),
    );
    expect(config.master).toBe('https://10.0.0.1');
    expect(invocation).toEqual({ configFile: FILE, writeConfigTo: 'out', cleanup: true, initOnly: true });
  });

  test('a file that cannot be read', () => {
    const readFile = (): string => {
      throw new Error('ENOENT: no such file or directory');
    };
    expect(loadConfig(parse('--config=/nope'), readFile)).toEqual({
      ok: false,
      problems: ['cannot read --config /nope: ENOENT: no such file or directory'],
    });
  });
});

describe("the servers' addresses", () => {
  test.each<[readonly string[], string, string]>([
    [[], '0.0.0.0:10256', '127.0.0.1:10249'],
    // Flags have their defaults before the address is known.
    [['--bind-address=fd00::1'], '0.0.0.0:10256', '127.0.0.1:10249'],
    [['--healthz-bind-address=10.0.0.1', '--metrics-bind-address=::1'], '10.0.0.1:10256', '[::1]:10249'],
    [['--healthz-bind-address=10.0.0.1', '--healthz-port=1'], '10.0.0.1:1', '127.0.0.1:10249'],
    [['--healthz-bind-address=10.0.0.1:2', '--healthz-port=1'], '10.0.0.1:2', '127.0.0.1:10249'],
    [['--healthz-port=0', '--metrics-port=0'], '', ''],
    [
      ['--healthz-port=0', '--healthz-bind-address=1.2.3.4', '--write-config-to=x'],
      '1.2.3.4',
      '127.0.0.1:10249',
    ],
  ])('by flags: %j', (argv, healthzBindAddress, metricsBindAddress) => {
    expect(fromFlags(...argv)).toMatchObject({ healthzBindAddress, metricsBindAddress });
  });

  test.each<[object, string, string]>([
    [{}, '0.0.0.0:10256', '127.0.0.1:10249'],
    [{ bindAddress: 'fd00::1' }, '[::]:10256', '[::1]:10249'],
    [{ bindAddress: '::ffff:10.0.0.1' }, '0.0.0.0:10256', '127.0.0.1:10249'],
    [{ healthzBindAddress: '10.0.0.1', metricsBindAddress: '::' }, '10.0.0.1:10256', '[::]:10249'],
    [{ healthzBindAddress: '[fd00::5]', metricsBindAddress: 'x' }, '[fd00::5]', 'x'],
    [{ healthzBindAddress: '', metricsBindAddress: '' }, '0.0.0.0:10256', '127.0.0.1:10249'],
  ])('by file: %j', (fields, healthzBindAddress, metricsBindAddress) => {
    expect(fromFile(fields)).toMatchObject({ healthzBindAddress, metricsBindAddress });
  });
});

describe('defaults of the platform', () => {
  test('an empty mode is iptables, and is logged', () => {
    expect(load()).toMatchObject({
      config: { mode: 'iptables', nodePortAddresses: null, detectLocalMode: 'ClusterCIDR' },
      notes: [{ severity: 'info', message: 'Using iptables proxy' }],
    });
    expect(load(['--proxy-mode=iptables']).notes).toEqual([]);
  });

  test.each<[readonly string[] | null | undefined, readonly string[]]>([
    [undefined, ['primary']],
    [null, ['primary']],
    [[], ['primary']],
    [['10.0.0.0/8'], ['10.0.0.0/8']],
  ])('mode nftables with node port addresses %j has %j', (nodePortAddresses, expected) => {
    expect(fromFile({ mode: 'nftables', nodePortAddresses }).nodePortAddresses).toEqual(expected);
  });
});

test("the node's name is the override or the host's, trimmed and in lower case", () => {
  expect(nodeNameOf(fromFlags(), ' Host.Example ')).toBe('host.example');
  expect(nodeNameOf(fromFlags('--hostname-override=Node1'), 'host')).toBe('node1');
  expect(nodeNameOf(fromFile({ hostnameOverride: ' Node2 ' }), 'host')).toBe('node2');
  expect(nodeNameOf(fromFile({ hostnameOverride: '  ' }), 'host')).toBeUndefined();
});

describe('feature gates', () => {
  const told = (name: string): unknown => ({
    severity: 'warning',
    message: 'Feature gates have no effect, because Junction does not know them',
    fields: { featureGates: [name] },
  });

  test('of other components of Kubernetes are told, in a flag and in a file', () => {
    const flag = load(['--proxy-mode=iptables', '--feature-gates=KubeletInUserNamespace=true,AllBeta=true']);
    expect(flag.notes).toEqual([told('KubeletInUserNamespace')]);
    const file = stringify({ ...HEADER, mode: 'nftables', featureGates: { NFTablesProxyMode: true } });
    const { config, notes } = load([], file);
    expect(notes).toEqual([told('NFTablesProxyMode')]);
    expect(config.featureGates).toEqual({ NFTablesProxyMode: true });
  });

  test('that are misspelt get a suggestion', () => {
    const { notes } = load(['--proxy-mode=iptables', '--feature-gates=AllowServiceExternalIP=false']);
    expect(notes).toEqual([told('AllowServiceExternalIP (did you mean AllowServiceExternalIPs?)')]);
  });
});

test('flags that kube-proxy has from a library are accepted', () => {
  const { notes } = load(['--proxy-mode=iptables', '--boot-id-file=/b', '--machine_id_file', '/m']);
  expect(notes.map(({ message }) => message)).toEqual([
    expect.stringContaining('Flag --boot-id-file has no effect'),
    expect.stringContaining('Flag --machine-id-file has no effect'),
  ]);
});

describe('what has no effect', () => {
  test('is named where a flag gives it', () => {
    expect(load(['--config-sync-period=1m']).notes).toContainEqual({
      severity: 'warning',
      message: expect.stringContaining('Flag --config-sync-period has no effect, because ') as string,
    });
  });

  test('is named where a file gives it, unless that is the default', () => {
    const named = (fields: object): unknown =>
      load([], stringify({ ...HEADER, ...fields })).notes.find(({ message }) =>
        message.includes('have no effect'),
      )?.fields;
    expect(named({ configSyncPeriod: '1m' })).toEqual({
      settings: [expect.stringContaining('configSyncPeriod: ') as string],
    });
    const kubeadm = { configSyncPeriod: '0s', clientConnection: { contentType: '', acceptContentTypes: '' } };
    expect(named(kubeadm)).toBeUndefined();
    expect(named({ configSyncPeriod: '15m' })).toBeUndefined();
  });
});
