/** What the machine itself must be set to for services to work, looked at once at the start. */
import { isJunctionError, type JunctionError } from '../errors.ts';
import type { Family } from '../model/ip.ts';
import { ensureSysctl, readSysctl, type SysctlChange } from './sysctl.ts';

export interface SystemSettingsOptions {
  readonly families: readonly Family[];
  /** Node ports answer on 127.0.0.1. */
  readonly localhostNodePorts: boolean;
  /** Turns the bridge settings on where they are off; else they are only looked at. */
  readonly setBridgeCalls?: boolean | undefined;
  /** Instead of /proc/sys. */
  readonly root?: string | undefined;
}

export interface SystemWarning {
  readonly name: string;
  readonly message: string;
  /** A command, or what else to do. */
  readonly remedy: string;
  /** Where Junction tried to set it. */
  readonly error?: JunctionError;
}

export interface SystemSettings {
  /** Those that had another value before. */
  readonly changes: readonly SysctlChange[];
  readonly warnings: readonly SystemWarning[];
}

const ROUTE_LOCALNET = 'net/ipv4/conf/all/route_localnet';
const BRIDGE_CALLS: Readonly<Record<Family, string>> = {
  IPv4: 'net/bridge/bridge-nf-call-iptables',
  IPv6: 'net/bridge/bridge-nf-call-ip6tables',
};

export function applySystemSettings(options: SystemSettingsOptions): SystemSettings {
  const results = [
    ...(options.localhostNodePorts && options.families.includes('IPv4') ? [routeLocalnet(options)] : []),
    ...options.families.map((family) => bridgeCalls(BRIDGE_CALLS[family], options)),
  ];
  return {
    changes: results.flatMap((result) => result.changes),
    warnings: results.flatMap((result) => result.warnings),
  };
}

/** Packets to 127.0.0.1 that are sent on to a pod are martians, unless the kernel is told otherwise. */
function routeLocalnet(options: SystemSettingsOptions): SystemSettings {
  return ensure(
    ROUTE_LOCALNET,
    'node ports do not answer on 127.0.0.1',
    options,
    (error) => `${command(ROUTE_LOCALNET)}, or turn localhost node ports off. ${error.hint}`,
  );
}

/** Read each time and not remembered: br_netfilter, which brings the setting, may be loaded at any time. */
function bridgeCalls(name: string, options: SystemSettingsOptions): SystemSettings {
  if (!isOff(name, options)) return NOTHING;
  const consequence = 'pods on one bridge that talk through a service get answers from the wrong address';
  if (options.setBridgeCalls) return ensure(name, consequence, options, () => command(name));
  return {
    changes: [],
    warnings: [{ name, message: `${name} is 0: ${consequence}`, remedy: command(name) }],
  };
}

function isOff(name: string, { root }: SystemSettingsOptions): boolean {
  try {
    return readSysctl(name, { root }) === '0';
  } catch (error) {
    if (isJunctionError(error)) return false;
    throw error;
  }
}

function ensure(
  name: string,
  consequence: string,
  { root }: SystemSettingsOptions,
  remedy: (error: JunctionError) => string,
): SystemSettings {
  try {
    const change = ensureSysctl(name, 1, { root });
    return { changes: change.changed ? [change] : [], warnings: [] };
  } catch (error) {
    if (!isJunctionError(error)) throw error;
    const message = `${error.message}: ${consequence}`;
    return { changes: [], warnings: [{ name, message, remedy: remedy(error), error }] };
  }
}

/** Dots, as the program sysctl prints them; none of these names has a dot of its own. */
function command(name: string): string {
  return `sysctl -w ${name.replaceAll('/', '.')}=1`;
}

const NOTHING: SystemSettings = { changes: [], warnings: [] };
