/**
 * The connection-tracking limits and time-outs that a node with many services needs.
 *
 * A setting that cannot be made leaves the kernel's own value in force, and every service works; so it is
 * logged once, with its consequence, and is no reason to stop. In a network namespace that is not the first, the kernel
 * refuses the table's size by design.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { attempt, isJunctionError, type JunctionError } from '../errors.ts';
import type { Log } from '../log/log.ts';
import { ensureSysctl, readSysctl, settingError } from './sysctl.ts';

export interface ConntrackSettings {
  /** 0: leave the limit as it is, and `min` with it. */
  readonly maxPerCore: number;
  readonly min: number;
  /** Time-outs in milliseconds; 0 leaves what is there. */
  readonly tcpEstablishedTimeout: number;
  readonly tcpCloseWaitTimeout: number;
  /** `false` leaves what is there. */
  readonly tcpBeLiberal: boolean;
  readonly udpTimeout: number;
  readonly udpStreamTimeout: number;
}

/** What the table of connections costs is memory; more than this is asked for by `min` alone. */
const SCALED_LIMIT = 1_048_576;
const MAX = 'net/netfilter/nf_conntrack_max';
const HASHSIZE = 'nf_conntrack/parameters/hashsize';
const BUCKETS = 'net/netfilter/nf_conntrack_buckets';

interface WantedSetting {
  /** Under /proc/sys, or under /sys/module for the hash size. */
  readonly name: string;
  readonly wanted: number;
  readonly consequence: string;
}

type ConntrackOutcome = WantedSetting &
  (
    | { readonly state: 'set' | 'already' }
    /** `SYSCTL_MISSING` may mean that nothing has loaded nf_conntrack yet: the first rules do. */
    | { readonly state: 'failed'; readonly error: JunctionError }
  );

interface ConntrackOptions {
  readonly log: Pick<Log, 'info' | 'warn'>;
  readonly cpus?: number | undefined;
  /** Instead of /proc/sys. */
  readonly root?: string | undefined;
  /** Instead of /sys. */
  readonly sysRoot?: string | undefined;
}

/** `undefined`: leave it alone. */
function wantedMax({ maxPerCore, min }: ConntrackSettings, cpuCount: number): number | undefined {
  if (maxPerCore <= 0) return undefined;
  const scaled = maxPerCore * cpuCount;
  return scaled > SCALED_LIMIT ? SCALED_LIMIT : Math.max(scaled, min);
}

/** In the order in which they are made: `undefined` leaves what is there. */
const SETTINGS: readonly {
  readonly name: string;
  readonly wanted: (settings: ConntrackSettings, max: number | undefined) => number | undefined;
  readonly consequence: string;
}[] = [
  {
    name: MAX,
    wanted: (_, max) => max,
    consequence: "when the kernel's own limit of tracked connections is reached, new connections are dropped",
  },
  {
    name: HASHSIZE,
    wanted: (_, max) => (max === undefined ? undefined : Math.floor(max / 4)),
    consequence: 'with many connections every packet takes longer to find its own',
  },
  {
    name: 'net/netfilter/nf_conntrack_tcp_timeout_established',
    wanted: (conntrack) => seconds(conntrack.tcpEstablishedTimeout),
    consequence: 'idle TCP connections are forgotten, or kept, for as long as the kernel is set to',
  },
  {
    name: 'net/netfilter/nf_conntrack_tcp_timeout_close_wait',
    wanted: (conntrack) => seconds(conntrack.tcpCloseWaitTimeout),
    consequence: 'a TCP connection that one side has closed may be forgotten while the other still sends',
  },
  {
    name: 'net/netfilter/nf_conntrack_tcp_be_liberal',
    wanted: (conntrack) => (conntrack.tcpBeLiberal ? 1 : undefined),
    consequence: 'TCP packets outside the window count as invalid, and are dropped',
  },
  {
    name: 'net/netfilter/nf_conntrack_udp_timeout',
    wanted: (conntrack) => seconds(conntrack.udpTimeout),
    consequence: 'a UDP client that asked once keeps its endpoint for as long as the kernel is set to',
  },
  {
    name: 'net/netfilter/nf_conntrack_udp_timeout_stream',
    wanted: (conntrack) => seconds(conntrack.udpStreamTimeout),
    consequence: 'a UDP conversation keeps its endpoint for as long as the kernel is set to',
  },
];

export function wantedConntrackSettings(
  settings: ConntrackSettings,
  cpuCount: number,
): readonly WantedSetting[] {
  const max = wantedMax(settings, cpuCount);
  return SETTINGS.flatMap(({ name, wanted, consequence }) => {
    const value = wanted(settings, max);
    return value === undefined ? [] : [{ name, wanted: value, consequence }];
  });
}

/** Whole seconds; never 0, with which every connection would expire at once. */
function seconds(milliseconds: number): number | undefined {
  return milliseconds > 0 ? Math.max(1, Math.floor(milliseconds / 1000)) : undefined;
}

export function applyConntrackSettings(
  settings: ConntrackSettings,
  options: ConntrackOptions,
): readonly ConntrackOutcome[] {
  const wanted = wantedConntrackSettings(settings, options.cpus ?? countCpus(options.sysRoot));
  return wanted.map((each): ConntrackOutcome => {
    try {
      const changed = each.name === HASHSIZE ? growHashTable(each, options) : ensureSetting(each, options);
      return { ...each, state: changed ? 'set' : 'already' };
    } catch (error) {
      if (!isJunctionError(error)) throw error;
      options.log.warn('Failed to set a connection-tracking parameter; continuing without it', {
        name: each.name,
        wanted: each.wanted,
        err: error,
        consequence: each.consequence,
        hint: error.hint,
      });
      return { ...each, state: 'failed', error };
    }
  });
}

function ensureSetting({ name, wanted }: WantedSetting, { log, root }: ConntrackOptions): boolean {
  const { changed } = ensureSysctl(name, wanted, { root });
  if (changed && name === MAX) log.info('Setting nf_conntrack_max', { nfConntrackMax: wanted });
  if (changed) log.info('Set sysctl', { entry: name, value: wanted });
  return changed;
}

/** Only ever larger, and not written when large enough: outside the first network namespace a write fails. */
function growHashTable({ name, wanted }: WantedSetting, options: ConntrackOptions): boolean {
  const { log, sysRoot } = options;
  const path = join(sysRoot ?? '/sys', 'module', name);
  try {
    if (Number(readFileSync(path, 'utf8')) >= wanted) return false;
    writeFileSync(path, String(wanted));
  } catch (cause) {
    // A container sees /sys read-only; the same number is a sysctl since Linux 4.8.
    const isLarger = growBuckets(wanted, options);
    if (isLarger === undefined) throw settingError(`cannot set ${path} to ${wanted}`, cause, HASHSIZE_HINTS);
    if (!isLarger) return false;
  }
  log.info('Setting conntrack hashsize', { conntrackHashsize: wanted });
  return true;
}

/** `undefined`: it cannot be. */
function growBuckets(wanted: number, { root }: ConntrackOptions): boolean | undefined {
  try {
    if (Number(readSysctl(BUCKETS, { root })) >= wanted) return false;
    return ensureSysctl(BUCKETS, wanted, { root }).changed;
  } catch (error) {
    if (isJunctionError(error)) return undefined;
    throw error;
  }
}

const HASHSIZE_HINTS = {
  SYSCTL_MISSING: 'modprobe nf_conntrack',
  SYSCTL_DENIED:
    'Run privileged, with /sys mounted read-write, or set it on the node before Junction starts.',
  SYSCTL_REFUSED: 'The kernel takes it in the first network namespace only: set it on the machine itself.',
} as const;

/** All that are online, whatever part of them this process may use: connections belong to the machine. */
export function countCpus(sysRoot = '/sys'): number {
  const online = attempt(() => readFileSync(join(sysRoot, 'devices/system/cpu/online'), 'utf8')) ?? '';
  return parseCpuList(online) || cpus().length;
}

/** `0-3,8` is five. */
function parseCpuList(text: string): number {
  return text
    .trim()
    .split(',')
    .map((range) => /^(\d+)(?:-(\d+))?$/.exec(range))
    .reduce((sum, match) => sum + (match ? Number(match[2] ?? match[1]) - Number(match[1]) + 1 : 0), 0);
}
