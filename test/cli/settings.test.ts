import { hostname } from 'node:os';
import { describe, expect, test } from 'vitest';
import { type CommandName, flagsOf } from '../../src/cli/flags.ts';
import { type FlagValues, readSettings, type Settings, SettingsError } from '../../src/cli/settings.ts';

function settings(values: FlagValues = {}, command: CommandName = 'run'): Settings {
  return readSettings(flagsOf(command), values);
}

function problems(values: FlagValues, command: CommandName = 'run'): readonly string[] {
  try {
    settings(values, command);
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
  return [];
}

test('without any flag', () => {
  expect(settings()).toEqual({
    nodeName: hostname().trim().toLowerCase(),
    bindAddress: '0.0.0.0',
    detectLocal: { mode: 'ClusterCIDR', cidrs: [] },
    masqueradeAll: false,
    nodePortAddresses: [],
    localhostNodePorts: true,
    manifests: [],
    layout: 'current',
    variant: 'auto',
    families: ['IPv4', 'IPv6'],
    masqueradeBit: 14,
    syncPeriodMs: 30_000,
    minSyncPeriodMs: 1000,
    verbosity: 0,
    loggingFormat: 'text',
    output: '',
    dryRun: false,
  });
});

test.each(['plan', 'cleanup'] as const)('%s has defaults too', (command) => {
  expect(settings({}, command)).toMatchObject({ output: 'text', families: ['IPv4', 'IPv6'] });
});

describe('what flags mean', () => {
  const table: readonly (readonly [FlagValues, Partial<Settings>])[] = [
    [{ 'hostname-override': ' Node-A ' }, { nodeName: 'node-a' }],
    [{ 'bind-address': '192.0.2.010' }, { bindAddress: '192.0.2.10' as Settings['bindAddress'] & string }],
    [{ 'bind-address': '' }, { bindAddress: undefined }],
    [{ manifests: ['a.yaml', 'dir,with,commas'] }, { manifests: ['a.yaml', 'dir,with,commas'] }],
    [{ family: 'ipv6' }, { families: ['IPv6'] }],
    [{ 'iptables-layout': 'classic' }, { layout: 'classic' }],
    [{ 'iptables-variant': 'legacy' }, { variant: 'legacy' }],
    [{ 'masquerade-all': 'true' }, { masqueradeAll: true }],
    [{ 'masquerade-all': 'T' }, { masqueradeAll: true }],
    [{ 'masquerade-all': '0' }, { masqueradeAll: false }],
    [{ 'iptables-localhost-nodeports': 'false' }, { localhostNodePorts: false }],
    [{ 'iptables-masquerade-bit': '31' }, { masqueradeBit: 31 }],
    [
      { 'iptables-sync-period': '1m30s', 'iptables-min-sync-period': '0s' },
      { syncPeriodMs: 90_000, minSyncPeriodMs: 0 },
    ],
    [{ 'nodeport-addresses': 'primary' }, { nodePortAddresses: 'primary' }],
    [
      { v: '4', 'logging-format': 'json' },
      { verbosity: 4, loggingFormat: 'json' },
    ],
    [{ 'detect-local-mode': 'NodeCIDR' }, { detectLocal: { mode: 'NodeCIDR' } }],
    [
      { 'detect-local-mode': 'BridgeInterface', 'pod-bridge-interface': 'cni0' },
      { detectLocal: { mode: 'BridgeInterface', name: 'cni0' } },
    ],
    [
      { 'detect-local-mode': 'InterfaceNamePrefix', 'pod-interface-name-prefix': 'veth' },
      { detectLocal: { mode: 'InterfaceNamePrefix', prefix: 'veth' } },
    ],
  ];
  test.each(table)('%j', (values, expected) => expect(settings(values)).toMatchObject(expected));

  test.each([[['10.244.0.0/16,fd00::/48']], [['10.244.0.0/16', 'fd00::/48']], ['10.244.0.0/16,fd00::/48']])(
    'lists by commas and by repetition: %j',
    (value) => {
      expect(settings({ 'cluster-cidr': value }).detectLocal).toEqual({
        mode: 'ClusterCIDR',
        cidrs: ['10.244.0.0/16', 'fd00::/48'],
      });
    },
  );

  test('of a flag given twice the last counts', () => {
    expect(settings({ family: ['ipv4', 'ipv6'] }).families).toEqual(['IPv6']);
  });

  test('CIDRs are masked', () => {
    expect(settings({ 'nodeport-addresses': ['192.0.2.010/24, 127.0.0.1/8'] }).nodePortAddresses).toEqual([
      '192.0.2.0/24',
      '127.0.0.0/8',
    ]);
  });
});

describe('what is wrong', () => {
  const table: readonly (readonly [FlagValues, readonly string[]])[] = [
    [{ family: 'ipv5' }, ['--family "ipv5" must be one of both, ipv4, ipv6']],
    [{ 'proxy-mode': 'ebpf' }, ['--proxy-mode "ebpf" must be one of iptables']],
    [{ 'iptables-layout': 'modern' }, ['--iptables-layout "modern" must be one of current, classic']],
    [{ 'masquerade-all': 'maybe' }, ['--masquerade-all "maybe" must be true or false']],
    [{ 'iptables-masquerade-bit': '32' }, ['--iptables-masquerade-bit 32 must be within the range [0, 31]']],
    [{ 'iptables-masquerade-bit': '-1' }, ['--iptables-masquerade-bit -1 must be within the range [0, 31]']],
    [{ 'iptables-masquerade-bit': '1.5' }, ['--iptables-masquerade-bit "1.5" must be a whole number']],
    [
      { 'iptables-sync-period': '30' },
      [
        '--iptables-sync-period "30" must be a duration such as 30s or 1m30s',
        '--iptables-sync-period must be greater than or equal to --iptables-min-sync-period',
      ],
    ],
    [
      { 'iptables-sync-period': '0s', 'iptables-min-sync-period': '0s' },
      ['--iptables-sync-period 0s must be greater than 0'],
    ],
    [
      { 'iptables-min-sync-period': '-1s' },
      ['--iptables-min-sync-period -1s must be greater than or equal to 0'],
    ],
    [
      { 'iptables-min-sync-period': '31s' },
      ['--iptables-sync-period must be greater than or equal to --iptables-min-sync-period'],
    ],
    [{ 'hostname-override': '  ' }, ['--hostname-override must not be empty']],
    [
      { 'bind-address': 'localhost' },
      ['--bind-address "localhost" must be an IP address, such as 192.0.2.10'],
    ],
    [
      { 'cluster-cidr': '10.244.0.0' },
      ['--cluster-cidr "10.244.0.0" must be a valid CIDR, such as 10.244.0.0/16'],
    ],
    [
      { 'cluster-cidr': '10.0.0.0/8,11.0.0.0/8' },
      ['--cluster-cidr must be one CIDR, or one of each family, such as 10.100.0.0/16,fde4:8dba:82e1::/48'],
    ],
    [
      { 'cluster-cidr': '10.0.0.0/8,fd00::/8,11.0.0.0/8' },
      ['--cluster-cidr must be one CIDR, or one of each family, such as 10.100.0.0/16,fde4:8dba:82e1::/48'],
    ],
    [
      { 'nodeport-addresses': 'primary,10.0.0.0/8' },
      ["--nodeport-addresses can't use both 'primary' and CIDRs"],
    ],
    [
      { 'nodeport-addresses': 'eth0' },
      ['--nodeport-addresses "eth0" must be a valid CIDR, such as 10.244.0.0/16'],
    ],
    [
      { 'detect-local-mode': 'BridgeInterface' },
      ['--pod-bridge-interface must not be empty in this --detect-local-mode'],
    ],
    [
      { 'detect-local-mode': 'BridgeInterface', 'pod-bridge-interface': 'cni0 -j ACCEPT' },
      ['--pod-bridge-interface "cni0 -j ACCEPT" must be an interface\'s name, such as cni0'],
    ],
    [
      { 'detect-local-mode': 'InterfaceNamePrefix', 'pod-interface-name-prefix': 'a'.repeat(16) },
      [`--pod-interface-name-prefix "${'a'.repeat(16)}" must be an interface's name, such as cni0`],
    ],
    [{ v: 'high' }, ['--v "high" must be a whole number']],
  ];
  test.each(table)('%j', (values, expected) => expect(problems(values)).toEqual(expected));

  test('everything is told at once', () => {
    const found = problems({ family: 'x', 'bind-address': 'x', 'cluster-cidr': 'x', 'masquerade-all': 'x' });
    expect(found).toHaveLength(4);
  });

  test('a long value is cut', () => {
    const [text = ''] = problems({ 'bind-address': 'x'.repeat(10_000) });
    expect(text.length).toBeLessThan(150);
  });
});
