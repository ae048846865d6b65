/** A machine that has everything, but for what a test takes away. */
import { JunctionError } from '../../../src/errors.ts';
import { DONE, type Trial } from '../../../src/modes/prerequisites/check.ts';
import type { Machine } from '../../../src/modes/prerequisites/machine.ts';
import type { Family } from '../../../src/model/ip.ts';
import { FakeNftables, type FakeNftablesOptions } from './fakeNftables.ts';
import { FakeIptables, type FakeIptablesOptions } from './fakeIptables.ts';

export interface Lacks {
  /** /proc/self/status: `CapEff`. */
  readonly capabilities?: string;
  /** What modprobe does not find. It loads all others, and then they are there. */
  readonly modules?: readonly string[];
  /** Modules that nothing has loaded yet: ip_vs, ip_vs_rr, dummy, ip_set_…, nf_conntrack_netlink. */
  readonly unloaded?: readonly string[];
  readonly moduleFolder?: boolean;
  readonly ipv6?: boolean;
  readonly programs?: readonly string[];
  readonly iptables?: FakeIptablesOptions;
  readonly iptablesOf?: Partial<Record<Family, FakeIptablesOptions>>;
  readonly nftables?: FakeNftablesOptions;
  readonly nftablesOf?: Partial<Record<Family, FakeNftablesOptions>>;
  readonly schedulers?: readonly string[];
  readonly link?: Awaited<ReturnType<Machine['findDevice']>>;
  /** Values under /proc/sys; a setting that is `undefined` is not there. */
  readonly sysctls?: Readonly<Record<string, string | undefined>>;
  readonly readOnlySysctls?: boolean;
}

const ALL_CAPABILITIES = '000001ffffffffff';

export interface FakeMachine extends Machine {
  readonly clients: FakeIptables[];
  /** Sets that are there now, by name. */
  readonly trialObjects: ReadonlySet<string>;
  /** What was tried and made, in order. */
  readonly trials: readonly string[];
}

export function fakeMachine(lacks: Lacks = {}): FakeMachine {
  const unloaded = new Set([...(lacks.unloaded ?? []), ...(lacks.modules ?? [])]);
  const trialObjects = new Set<string>();
  const trials: string[] = [];
  const clients: FakeIptables[] = [];
  const nftablesOf = (family: Family): FakeNftables =>
    new FakeNftables(family, { ...lacks.nftables, ...lacks.nftablesOf?.[family] }, unloaded);
  const nftables: Readonly<Record<Family, FakeNftables>> = {
    IPv4: nftablesOf('IPv4'),
    IPv6: nftablesOf('IPv6'),
  };
  const sysctls: Readonly<Record<string, string | undefined>> = {
    'net/bridge/bridge-nf-call-iptables': '1',
    'net/ipv4/conf/all/route_localnet': '0',
    'net/ipv4/ip_forward': '1',
    'net/ipv4/vs/conntrack': '0',
    'net/ipv4/vs/expire_nodest_conn': '0',
    'net/ipv4/vs/expire_quiescent_template': '1',
    ...lacks.sysctls,
  };
  const withModule = (module: string, refusal: string): Trial =>
    unloaded.has(module) ? { state: 'refused', reason: refusal } : DONE;
  const makeObject = (name: string): Trial => {
    trialObjects.add(name);
    return DONE;
  };
  const removeObject = async (name: string): Promise<void> => {
    trialObjects.delete(name);
  };
  return {
    clients,
    trialObjects,
    trials,
    kernelRelease: '6.1.0-18-amd64',
    processStatus: () => `Name:\tnode\nCapPrm:\t0\nCapEff:\t${lacks.capabilities ?? ALL_CAPABILITIES}\n`,
    hasIpv6: () => lacks.ipv6 ?? true,
    hasModuleFolder: () => lacks.moduleFolder ?? true,
    loadModule: async (name) => {
      trials.push(`modprobe ${name}`);
      if (lacks.modules?.includes(name) === true)
        return { state: 'refused', reason: `modprobe: FATAL: Module ${name} not found` };
      unloaded.delete(name);
      return DONE;
    },
    openClient: async (family) => {
      const program = family === 'IPv4' ? 'iptables' : 'ip6tables';
      if (lacks.programs?.includes(program) === true)
        throw new JunctionError('PROGRAM_MISSING', `the program ${program} is not installed`, {
          hint: 'apt-get install iptables',
        });
      const client = new FakeIptables(
        { ...lacks.iptables, ...lacks.iptablesOf?.[family], family },
        lacks.programs,
      );
      clients.push(client);
      return client;
    },
    setType: async (type) => {
      const module = `ip_set_${type.replace(':', '_').replaceAll(',', '')}`;
      return withModule(module, 'ENOENT');
    },
    makeSet: async (name) =>
      unloaded.has('ip_set_hash_ip') ? { state: 'refused', reason: 'no sets' } : makeObject(name),
    removeSet: removeObject,
    tryTable: async (family, transaction) => {
      const isOwned = transaction.some((each) => each.kind === 'addTable' && each.isOwned);
      trials.push(`${isOwned ? 'owned table' : 'table'} of ${family}`);
      return nftables[family].tryTable(transaction);
    },
    findIpvs: async () => withModule('ip_vs', 'the kernel has no IPVS'),
    tryScheduler: async (name) => {
      trials.push(`virtual server with ${name}`);
      const isKnown = (lacks.schedulers ?? ['rr', 'wrr']).includes(name);
      return isKnown ? withModule(`ip_vs_${name}`, 'ENOENT') : { state: 'refused', reason: 'ENOENT' };
    },
    findDevice: async () => lacks.link,
    tryLink: async (kind) => {
      trials.push(`link of kind ${kind}`);
      return withModule(kind, 'EOPNOTSUPP');
    },
    tryConntrack: () => withModule('nf_conntrack_netlink', 'EINVAL'),
    sysctl: (name) => {
      const value = sysctls[name];
      return value === undefined
        ? { state: 'absent' }
        : { state: 'value', value, writable: lacks.readOnlySysctls !== true };
    },
  };
}
