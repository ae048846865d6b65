import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  applyConntrackSettings,
  type ConntrackSettings,
  countCpus,
  parseCpuList,
  wantedConntrackMax,
  wantedConntrackSettings,
} from '../../src/system/conntrackSysctls.ts';
import { bundle } from './support/bundle.ts';
import { type Namespace, openNamespace, requireNamespaces } from './support/namespace.ts';

const DEFAULTS: ConntrackSettings = {
  maxPerCore: 32_768,
  min: 131_072,
  tcpEstablishedTimeout: 86_400_000,
  tcpCloseWaitTimeout: 3_600_000,
  tcpBeLiberal: false,
  udpTimeout: 0,
  udpStreamTimeout: 0,
};
const NOTHING: ConntrackSettings = {
  ...DEFAULTS,
  maxPerCore: 0,
  tcpEstablishedTimeout: 0,
  tcpCloseWaitTimeout: 0,
};

describe('the limit of connections', () => {
  it.each([
    { maxPerCore: 0, min: 131_072, cpus: 8, max: undefined },
    { maxPerCore: 32_768, min: 131_072, cpus: 2, max: 131_072 },
    { maxPerCore: 32_768, min: 131_072, cpus: 8, max: 262_144 },
    { maxPerCore: 32_768, min: 0, cpus: 1, max: 32_768 },
    { maxPerCore: 32_768, min: 131_072, cpus: 32, max: 1_048_576 },
    { maxPerCore: 32_768, min: 131_072, cpus: 512, max: 1_048_576 },
    { maxPerCore: 32_768, min: 3_000_000, cpus: 32, max: 3_000_000 }, // only what is scaled is capped
    { maxPerCore: 32_768, min: 3_000_000, cpus: 33, max: 1_048_576 },
  ])('$maxPerCore for each of $cpus, $min at least: $max', ({ max, cpus, ...settings }) => {
    expect(wantedConntrackMax(settings, cpus)).toBe(max);
  });
});

describe('wanted settings', () => {
  const print = (settings: ConntrackSettings): readonly string[] =>
    wantedConntrackSettings(settings, 8).map(({ name, wanted }) => `${name} ${wanted}`);

  it('come in the order in which they are made', () => {
    const all = { ...DEFAULTS, tcpBeLiberal: true, udpTimeout: 30_000, udpStreamTimeout: 180_000 };
    expect(print(all)).toEqual([
      'net/netfilter/nf_conntrack_max 262144',
      'nf_conntrack/parameters/hashsize 65536',
      'net/netfilter/nf_conntrack_tcp_timeout_established 86400',
      'net/netfilter/nf_conntrack_tcp_timeout_close_wait 3600',
      'net/netfilter/nf_conntrack_tcp_be_liberal 1',
      'net/netfilter/nf_conntrack_udp_timeout 30',
      'net/netfilter/nf_conntrack_udp_timeout_stream 180',
    ]);
  });

  it('are none where everything is left as it is', () => expect(print(NOTHING)).toEqual([]));

  it('are whole seconds, and never the 0 that would forget everything at once', () => {
    expect(print({ ...NOTHING, udpTimeout: 1999, udpStreamTimeout: 10 })).toEqual([
      'net/netfilter/nf_conntrack_udp_timeout 1',
      'net/netfilter/nf_conntrack_udp_timeout_stream 1',
    ]);
  });
});

describe('processors', () => {
  it.each([
    ['0', 1],
    ['0-3\n', 4],
    ['0-3,8,10-11', 7],
    ['', 0],
  ])('%j are %i', (text, count) => expect(parseCpuList(text)).toBe(count));

  it('are counted on this machine', () => {
    expect(countCpus()).toBe(Number(execFileSync('getconf', ['_NPROCESSORS_ONLN'], { encoding: 'utf8' })));
    expect(countCpus('/nosuch')).toBeGreaterThan(0);
  });
});

describe('applying', () => {
  let directory: string;
  let logged: string[];
  const paths = {
    max: 'proc/net/netfilter/nf_conntrack_max',
    hashsize: 'sys/module/nf_conntrack/parameters/hashsize',
  };
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text);
  };
  const read = (path: string): string => readFileSync(join(directory, path), 'utf8');
  const apply = (settings: ConntrackSettings): readonly string[] =>
    applyConntrackSettings(settings, {
      cpus: 8,
      root: join(directory, 'proc'),
      sysRoot: join(directory, 'sys'),
      log: {
        info: (message, fields) => logged.push(`${message} ${JSON.stringify(fields)}`),
        warn: (message, fields) => logged.push(`W ${message}: ${String(fields?.['name'])}`),
      },
    }).map(({ name, state }) => `${name.split('/').at(-1)} ${state}`);

  beforeEach(() => {
    logged = [];
    directory = mkdtempSync(join(tmpdir(), 'junction-'));
    write(paths.max, '65536\n');
    write(paths.hashsize, '16384\n');
    write('proc/net/netfilter/nf_conntrack_tcp_timeout_established', '432000\n');
    write('proc/net/netfilter/nf_conntrack_tcp_timeout_close_wait', '3600\n');
  });
  afterEach(() => {
    rmSync(directory, { recursive: true });
  });

  it('writes what differs, and says so', () => {
    expect(apply(DEFAULTS)).toEqual([
      'nf_conntrack_max set',
      'hashsize set',
      'nf_conntrack_tcp_timeout_established set',
      'nf_conntrack_tcp_timeout_close_wait already',
    ]);
    expect([read(paths.max), read(paths.hashsize)]).toEqual(['262144', '65536']);
    expect(logged).toEqual([
      'Setting nf_conntrack_max {"nfConntrackMax":262144}',
      'Set sysctl {"entry":"net/netfilter/nf_conntrack_max","value":262144}',
      'Setting conntrack hashsize {"conntrackHashsize":65536}',
      'Set sysctl {"entry":"net/netfilter/nf_conntrack_tcp_timeout_established","value":86400}',
    ]);
  });

  it('grows the hash table by its sysctl where a container cannot write /sys', () => {
    const buckets = 'proc/net/netfilter/nf_conntrack_buckets';
    write(buckets, '16384\n');
    rmSync(join(directory, 'sys'), { recursive: true });
    expect(apply(DEFAULTS)).toContain('hashsize set');
    expect(read(buckets)).toBe('65536');
    write(buckets, '1000000\n');
    expect(apply(DEFAULTS)).toContain('hashsize already');
    expect(read(buckets)).toBe('1000000\n');
  });

  it('never makes the hash table smaller', () => {
    write(paths.hashsize, '1000000\n');
    expect(apply(DEFAULTS)).toContain('hashsize already');
    expect(read(paths.hashsize)).toBe('1000000\n');
  });

  it('goes on where the kernel lacks a setting, and tells the consequence', () => {
    rmSync(join(directory, paths.max));
    rmSync(join(directory, paths.hashsize));
    expect(apply(DEFAULTS)).toEqual([
      'nf_conntrack_max failed',
      'hashsize failed',
      'nf_conntrack_tcp_timeout_established set',
      'nf_conntrack_tcp_timeout_close_wait already',
    ]);
    expect(logged.filter((line) => line.startsWith('W'))).toHaveLength(2);
  });
});

describe('a real kernel', () => {
  let namespace: Namespace;
  beforeEach(async (context) => {
    requireNamespaces(context);
    namespace = await openNamespace();
  });
  afterEach(() => namespace.close());

  /** The size of the table belongs to the whole machine, so it is refused here; time-outs are the namespace's own. */
  it('takes time-outs in a namespace, and refuses the size', async () => {
    const settings = {
      ...DEFAULTS,
      maxPerCore: 1,
      min: 123_457,
      tcpEstablishedTimeout: 77_000,
      tcpBeLiberal: true,
    };
    const script = await bundle(
      'conntrack',
      `import { applyConntrackSettings } from './src/system/conntrackSysctls.ts';
       const log = { info: () => undefined, warn: () => undefined };
       const outcomes = applyConntrackSettings(${JSON.stringify(settings)}, { log, cpus: 1 });
       console.log(JSON.stringify(outcomes.map(({ name, state, error }) => [name.split('/').at(-1), state, error?.code])));`,
    );
    const { stdout, stderr } = await namespace.runner([process.execPath, script]);
    expect(stderr).toBe('');
    const states = new Map((JSON.parse(stdout) as [string, string][]).map(([name, ...rest]) => [name, rest]));
    expect(states.get('nf_conntrack_max')?.[0]).toBe('failed');
    expect(states.get('nf_conntrack_tcp_timeout_established')).toEqual(['set', null]);
    expect(states.get('nf_conntrack_tcp_be_liberal')).toEqual(['set', null]);
    const { stdout: seconds } = await namespace.runner([
      'cat',
      '/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established',
    ]);
    expect(seconds.trim()).toBe('77');
  });
});
