/**
 * Kernel settings under /proc/sys. Names are written with slashes (`net/ipv4/conf/all/route_localnet`), because an
 * interface's name may hold dots.
 *
 * Synchronous on purpose: /proc/sys/net shows the network namespace of the thread that opens it, and Node's
 * asynchronous file calls run on other threads.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { attempt, errorCode, isJunctionError, JunctionError } from '../errors.ts';
import type { Log } from '../log/log.ts';
import type { Family } from '../model/ip.ts';

export interface SysctlOptions {
  /** Instead of /proc/sys. */
  readonly root?: string | undefined;
}

export function readSysctl(name: string, options: SysctlOptions = {}): string {
  try {
    return readFileSync(pathOf(name, options), 'utf8').trim();
  } catch (error) {
    throw settingError(`cannot read sysctl ${name}`, error);
  }
}

/** Writes only what is not so already: /proc/sys is often read-only where the values are right. */
export function ensureSysctl(name: string, value: string | number, options: SysctlOptions = {}) {
  const wanted = String(value);
  const previous = readSysctl(name, options);
  if (sameValue(previous, wanted)) return { name, previous, value: wanted, changed: false };
  try {
    writeFileSync(pathOf(name, options), wanted);
  } catch (error) {
    throw settingError(`cannot write sysctl ${name} (set to ${wanted})`, error);
  }
  return { name, previous, value: wanted, changed: true };
}

/** Settings of several numbers are printed with tabs between them. */
function sameValue(left: string, right: string): boolean {
  return left.split(/\s+/).join(' ') === right.trim().split(/\s+/).join(' ');
}

function pathOf(name: string, options: SysctlOptions): string {
  return join(options.root ?? '/proc/sys', name);
}

const CODES: Readonly<Record<string, 'SYSCTL_MISSING' | 'SYSCTL_DENIED'>> = {
  ENOENT: 'SYSCTL_MISSING',
  ENOTDIR: 'SYSCTL_MISSING',
  EACCES: 'SYSCTL_DENIED',
  EPERM: 'SYSCTL_DENIED',
  EROFS: 'SYSCTL_DENIED',
};

/** By the errno of the cause. */
export function settingError(
  message: string,
  cause: unknown,
  hints: { readonly [code in 'SYSCTL_MISSING' | 'SYSCTL_DENIED' | 'SYSCTL_REFUSED']?: string } = {},
): JunctionError {
  const errno = errorCode(cause) ?? 'unknown error';
  const code = CODES[errno] ?? 'SYSCTL_REFUSED';
  return new JunctionError(code, `${message}: ${errno}`, { cause, hint: hints[code] });
}

/**
 * Whether this node routes packets to 127.0.0.0/8, so that a neighbour's packet can reach what listens there. The kernel
 * takes the setting of `all` or that of the interface, whichever is on. What cannot be read counts as on: a guard too
 * many drops only packets that nobody should send.
 */
export function isLocalnetRouted(root = '/proc/sys'): boolean {
  const folder = join(root, 'net/ipv4/conf');
  const isRouted = (device: string): boolean =>
    readFileSync(join(folder, device, 'route_localnet'), 'utf8').trim() !== '0';
  return attempt(() => readdirSync(folder).some(isRouted)) ?? true;
}

export interface SystemSettingsOptions extends SysctlOptions {
  readonly families: readonly Family[];
  /** Node ports answer on 127.0.0.1. */
  readonly localhostNodePorts: boolean;
}

const ROUTE_LOCALNET = 'net/ipv4/conf/all/route_localnet';
const BRIDGE_CALLS: Readonly<Record<Family, string>> = {
  IPv4: 'net/bridge/bridge-nf-call-iptables',
  IPv6: 'net/bridge/bridge-nf-call-ip6tables',
};

/** What the machine itself must be set to for services to work, looked at once at the start. */
export function applySystemSettings(options: SystemSettingsOptions) {
  const { families, localhostNodePorts } = options;
  /** Those that had another value before. */
  const changes: ReturnType<typeof ensureSysctl>[] = [];
  /** The remedy is a command, or what else to do. */
  const warnings: { readonly message: string; readonly remedy: string }[] = [];
  // Packets to 127.0.0.1 that are sent on to a pod are martians without this setting.
  if (localhostNodePorts && families.includes('IPv4')) {
    try {
      const change = ensureSysctl(ROUTE_LOCALNET, 1, options);
      if (change.changed) changes.push(change);
    } catch (error) {
      if (!isJunctionError(error)) throw error;
      const message = `${error.message}: node ports do not answer on 127.0.0.1`;
      const remedy = `${command(ROUTE_LOCALNET)}, or turn localhost node ports off. ${error.hint}`;
      warnings.push({ message, remedy });
    }
  }
  const consequence = 'pods on one bridge that talk through a service get answers from the wrong address';
  for (const name of families.map((family) => BRIDGE_CALLS[family]))
    if (isOff(name, options))
      warnings.push({ message: `${name} is 0: ${consequence}`, remedy: command(name) });
  return { changes, warnings };
}

/** Read each time and not cached: br_netfilter, which brings the setting, may be loaded at any time. */
function isOff(name: string, options: SysctlOptions): boolean {
  try {
    return readSysctl(name, options) === '0';
  } catch (error) {
    if (isJunctionError(error)) return false;
    throw error;
  }
}

/** Dots, as the program sysctl prints them; none of these names has a dot of its own. */
function command(name: string): string {
  return `sysctl -w ${name.replaceAll('/', '.')}=1`;
}

/**
 * How soon the kernel ends this process when memory runs out: -1000 never, 1000 first. Lowering it takes
 * CAP_SYS_RESOURCE, and everything works without. Returns whether it was set.
 */
export function applyOomScore(
  score: number,
  { log, root = '/proc' }: { readonly log: Pick<Log, 'verbose'>; readonly root?: string | undefined },
): boolean {
  try {
    writeFileSync(join(root, 'self/oom_score_adj'), String(score));
    return true;
  } catch (error) {
    log.verbose(2, 'Failed to apply OOMScore', { oomScoreAdj: score, err: error });
    return false;
  }
}
