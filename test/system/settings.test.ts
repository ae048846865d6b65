/** What the machine is set to, on files that stand for /proc and /sys, and on a real kernel. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import {
  applyConntrackSettings,
  type ConntrackSettings,
  countCpus,
  wantedConntrackSettings,
} from '../../src/system/conntrackSysctls.ts';
import {
  applyOomScore,
  applySystemSettings,
  ensureSysctl,
  readSysctl,
  type SystemSettingsOptions,
} from '../../src/system/sysctl.ts';
import { inside } from './support/inside.ts';
import { openNamespace, requireNamespaces } from './support/namespace.ts';

let directory = '';
let logged: string[] = [];

beforeEach(() => {
  logged = [];
  directory = mkdtempSync(join(tmpdir(), 'junction-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

function write(path: string, text: string): void {
  mkdirSync(dirname(join(directory, path)), { recursive: true });
  writeFileSync(join(directory, path), text);
}

function read(path: string): string {
  return readFileSync(join(directory, path), 'utf8').trim();
}

const DEFAULTS: ConntrackSettings = {
  maxPerCore: 32_768,
  min: 131_072,
  tcpEstablishedTimeout: 86_400_000,
  tcpCloseWaitTimeout: 3_600_000,
  tcpBeLiberal: false,
  udpTimeout: 0,
  udpStreamTimeout: 0,
};
const NOTHING = { ...DEFAULTS, maxPerCore: 0, tcpEstablishedTimeout: 0, tcpCloseWaitTimeout: 0 };

describe('connection tracking', () => {
  const wanted = (settings: ConntrackSettings, cpus = 8): readonly string[] =>
    wantedConntrackSettings(settings, cpus).map(({ name, wanted: value }) => `${name} ${value}`);

  it.each([
    { maxPerCore: 32_768, min: 131_072, cpus: 2, max: 131_072 },
    { maxPerCore: 32_768, min: 131_072, cpus: 8, max: 262_144 },
    { maxPerCore: 32_768, min: 0, cpus: 1, max: 32_768 },
    { maxPerCore: 32_768, min: 131_072, cpus: 512, max: 1_048_576 },
    { maxPerCore: 32_768, min: 3_000_000, cpus: 32, max: 3_000_000 }, // only what is scaled is capped
    { maxPerCore: 32_768, min: 3_000_000, cpus: 33, max: 1_048_576 },
  ])('has room for $maxPerCore for each of $cpus, $min at least: $max', ({ max, cpus, ...limits }) => {
    expect(wanted({ ...NOTHING, ...limits }, cpus)[0]).toBe(`net/netfilter/nf_conntrack_max ${max}`);
  });

  it('has settings in the order in which they are made', () => {
    const all = { ...DEFAULTS, tcpBeLiberal: true, udpTimeout: 30_000, udpStreamTimeout: 180_000 };
    expect(wanted(all)).toEqual([
      'net/netfilter/nf_conntrack_max 262144',
      'nf_conntrack/parameters/hashsize 65536',
      'net/netfilter/nf_conntrack_tcp_timeout_established 86400',
      'net/netfilter/nf_conntrack_tcp_timeout_close_wait 3600',
      'net/netfilter/nf_conntrack_tcp_be_liberal 1',
      'net/netfilter/nf_conntrack_udp_timeout 30',
      'net/netfilter/nf_conntrack_udp_timeout_stream 180',
    ]);
    expect(wanted(NOTHING)).toEqual([]);
  });

  it('has whole seconds, and never the 0 that would forget everything at once', () => {
    expect(wanted({ ...NOTHING, udpTimeout: 1999, udpStreamTimeout: 10 })).toEqual([
      'net/netfilter/nf_conntrack_udp_timeout 1',
      'net/netfilter/nf_conntrack_udp_timeout_stream 1',
    ]);
  });
});

it.each([
  ['0', 1],
  ['0-3\n', 4],
  ['0-3,8,10-11', 7],
])('%j are %i processors', (text, count) => {
  write('devices/system/cpu/online', text);
  expect(countCpus(directory)).toBe(count);
});

it('processors are counted on this machine', () => {
  expect(countCpus()).toBe(Number(execFileSync('getconf', ['_NPROCESSORS_ONLN'], { encoding: 'utf8' })));
  expect(countCpus('/nosuch')).toBeGreaterThan(0);
});

describe('settings of connection tracking', () => {
  const MAX = 'proc/net/netfilter/nf_conntrack_max';
  const HASHSIZE = 'sys/module/nf_conntrack/parameters/hashsize';
  const BUCKETS = 'proc/net/netfilter/nf_conntrack_buckets';
  const apply = (): readonly string[] =>
    applyConntrackSettings(DEFAULTS, {
      cpus: 8,
      root: join(directory, 'proc'),
      sysRoot: join(directory, 'sys'),
      log: {
        info: (message, fields) => logged.push(`${message} ${JSON.stringify(fields)}`),
        warn: (message, fields) => logged.push(`W ${message}: ${String(fields?.['name'])}`),
      },
    }).map(({ name, state }) => `${name.split('/').at(-1)} ${state}`);

  beforeEach(() => {
    write(MAX, '65536\n');
    write(HASHSIZE, '16384\n');
    write('proc/net/netfilter/nf_conntrack_tcp_timeout_established', '432000\n');
    write('proc/net/netfilter/nf_conntrack_tcp_timeout_close_wait', '3600\n');
  });

  it('are written where they differ, and logged', () => {
    expect(apply()).toEqual([
      'nf_conntrack_max set',
      'hashsize set',
      'nf_conntrack_tcp_timeout_established set',
      'nf_conntrack_tcp_timeout_close_wait already',
    ]);
    expect([read(MAX), read(HASHSIZE)]).toEqual(['262144', '65536']);
    expect(logged).toEqual([
      'Setting nf_conntrack_max {"nfConntrackMax":262144}',
      'Set sysctl {"entry":"net/netfilter/nf_conntrack_max","value":262144}',
      'Setting conntrack hashsize {"conntrackHashsize":65536}',
      'Set sysctl {"entry":"net/netfilter/nf_conntrack_tcp_timeout_established","value":86400}',
    ]);
  });

  it('grow the hash table by its sysctl where a container cannot write /sys', () => {
    rmSync(join(directory, 'sys'), { recursive: true });
    write(BUCKETS, '16384\n');
    expect(apply()).toContain('hashsize set');
    expect(read(BUCKETS)).toBe('65536');
  });

  it.each([HASHSIZE, BUCKETS])('never make the hash table smaller: %s', (path) => {
    rmSync(join(directory, HASHSIZE));
    write(path, '1000000\n');
    expect(apply()).toContain('hashsize already');
    expect(read(path)).toBe('1000000');
  });

  it('that the kernel lacks are told, and cost nothing else', () => {
    rmSync(join(directory, MAX));
    rmSync(join(directory, HASHSIZE));
    expect(apply()).toEqual([
      'nf_conntrack_max failed',
      'hashsize failed',
      'nf_conntrack_tcp_timeout_established set',
      'nf_conntrack_tcp_timeout_close_wait already',
    ]);
    expect(logged.filter((line) => line.startsWith('W'))).toHaveLength(2);
  });
});

/** The size of the table belongs to the whole machine, so it is refused here; time-outs are the namespace's own. */
it('a real kernel takes time-outs in a namespace, refuses the size, and takes the score', async (context) => {
  requireNamespaces(context);
  const namespace = await openNamespace();
  onTestFinished(() => namespace.close());
  const settings = {
    ...DEFAULTS,
    maxPerCore: 1,
    min: 123_457,
    tcpEstablishedTimeout: 77_000,
    tcpBeLiberal: true,
  };
  const states = await inside(
    namespace,
    'settings',
    `import { applyConntrackSettings } from './src/system/conntrackSysctls.ts';
     import { applyOomScore, readSysctl } from './src/system/sysctl.ts';
     import { readFileSync } from 'node:fs';
     const log = { info: () => undefined, warn: () => undefined, verbose: () => undefined };
     const outcomes = applyConntrackSettings(${JSON.stringify(settings)}, { log, cpus: 1 });
     const states = Object.fromEntries(outcomes.map(({ name, state }) => [name.split('/').at(-1), state]));
     const seconds = readSysctl('net/netfilter/nf_conntrack_tcp_timeout_established');
     const score = [applyOomScore(501, { log }), readFileSync('/proc/self/oom_score_adj', 'utf8').trim()];
     console.log(JSON.stringify({ ...states, seconds, score }));`,
  );
  expect(states).toMatchObject({
    nf_conntrack_max: 'failed',
    nf_conntrack_tcp_timeout_established: 'set',
    nf_conntrack_tcp_be_liberal: 'set',
    seconds: '77',
    score: [true, '501'],
  });
});

describe('a sysctl', () => {
  const NAME = 'net/ipv4/ip_forward';
  const ensure = (value: string | number): ReturnType<typeof ensureSysctl> =>
    ensureSysctl(NAME, value, { root: directory });

  it('is written, and what was there is told', () => {
    write(NAME, '0\n');
    expect(ensure(1)).toEqual({ name: NAME, previous: '0', value: '1', changed: true });
    expect(read(NAME)).toBe('1');
  });

  it.each([
    ['0\n', '0'],
    ['1\t2\n', '1 2'],
  ])('is not written where it is so already: %j', (text, value) => {
    write(NAME, text);
    expect(ensure(value).changed).toBe(false);
    expect(readFileSync(join(directory, NAME), 'utf8')).toBe(text);
  });

  it('of the real kernel is read, may be missing, and may be refused', () => {
    expect(readSysctl('kernel/ostype')).toBe('Linux');
    expect(() => readSysctl('net/nosuch')).toThrow(
      expect.objectContaining({ code: 'SYSCTL_MISSING', message: 'cannot read sysctl net/nosuch: ENOENT' }),
    );
    expect(() => ensureSysctl('kernel/ostype', 'Junction')).toThrow(
      expect.objectContaining({ code: 'SYSCTL_DENIED' }),
    );
  });
});

describe('system settings', () => {
  const LOCALNET = 'net/ipv4/conf/all/route_localnet';
  const BRIDGE = 'net/bridge/bridge-nf-call-iptables';
  const BRIDGE6 = 'net/bridge/bridge-nf-call-ip6tables';
  const apply = (options: Partial<SystemSettingsOptions> = {}): ReturnType<typeof applySystemSettings> =>
    applySystemSettings({
      families: ['IPv4', 'IPv6'],
      localhostNodePorts: true,
      root: directory,
      ...options,
    });

  beforeEach(() => {
    write(LOCALNET, '0\n');
    write(BRIDGE, '1\n');
    write(BRIDGE6, '1\n');
  });

  it('let node ports answer on 127.0.0.1', () => {
    const change = { name: LOCALNET, previous: '0', value: '1', changed: true };
    expect(apply()).toEqual({ changes: [change], warnings: [] });
    expect(read(LOCALNET)).toBe('1');
    expect(apply().changes).toEqual([]);
  });

  it.each<Partial<SystemSettingsOptions>>([{ localhostNodePorts: false }, { families: ['IPv6'] }])(
    'leave route_localnet alone where nothing needs it: %o',
    (options) => {
      expect(apply(options).changes).toEqual([]);
      expect(read(LOCALNET)).toBe('0');
    },
  );

  it('that cannot be made are warnings with their consequence', () => {
    rmSync(join(directory, LOCALNET));
    expect(apply().warnings).toEqual([
      {
        message: `cannot read sysctl ${LOCALNET}: ENOENT: node ports do not answer on 127.0.0.1`,
        remedy: expect.stringMatching(/^sysctl -w net\.ipv4\.conf\.all\.route_localnet=1, or turn/) as string,
      },
    ]);
  });

  it('of bridges are looked at, and left as they are', () => {
    write(BRIDGE, '0\n');
    write(BRIDGE6, '0\n');
    const consequence = 'pods on one bridge that talk through a service get answers from the wrong address';
    const warning = {
      message: `${BRIDGE} is 0: ${consequence}`,
      remedy: 'sysctl -w net.bridge.bridge-nf-call-iptables=1',
    };
    expect(apply({ families: ['IPv4'] }).warnings).toEqual([warning]);
    expect(apply().warnings).toEqual([
      warning,
      expect.objectContaining({ remedy: 'sysctl -w net.bridge.bridge-nf-call-ip6tables=1' }),
    ]);
    expect([read(BRIDGE), read(BRIDGE6)]).toEqual(['0', '0']);
    rmSync(join(directory, 'net/bridge'), { recursive: true });
    expect(apply().warnings).toEqual([]);
  });
});

it('a score that cannot be set is worth a quiet line', () => {
  const log = { verbose: (level: number, message: string) => logged.push(`V${level} ${message}`) };
  expect(applyOomScore(-999, { root: '/nosuch', log })).toBe(false);
  expect(logged).toEqual(['V2 Failed to apply OOMScore']);
});
