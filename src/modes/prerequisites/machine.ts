/**
 * Everything that the checks may do to this machine, in the network namespace of this thread: reads, and trials that
 * leave nothing behind.
 */
import { accessSync, constants as access, existsSync } from 'node:fs';
import { release } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../time/systemClock.ts';
import { wait } from '../../time/wait.ts';
import type { ValidConfig } from '../../config/effective.ts';
import { isJunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import { type Change, requestOnce } from '../../netlink/request.ts';
import type { NetlinkChannel } from '../../netlink/channel.ts';
import { withChannel } from '../../netlink/sockets.ts';
import { getFlows } from '../../netlink/conntrack.ts';
import { createSet, destroySet, type IpsetType } from '../../netlink/ipset.ts';
import { deleteService, type IpvsServiceKey, newService } from '../../netlink/ipvs.ts';
import { deleteLink, newLink } from '../../netlink/rtnetlink.ts';
import { NETLINK_GENERIC, NETLINK_NETFILTER, NETLINK_ROUTE } from '../../netlink/socket.ts';
import { type CommandRunner, run, timeLimited } from '../../system/processes.ts';
import { readSysctl } from '../../system/sysctl.ts';
import { IptablesClient } from '../iptables/client.ts';
import { isIpv6Enabled } from '../iptables/families.ts';
import { findIpvs, setSupport } from '../ipvs/client.ts';
import { findDevice } from '../ipvs/device.ts';
import { TRIAL_TABLE } from '../nftables/cleanup.ts';
import { NetlinkNftTables } from '../nftables/client.ts';
import type { TableOperation, TableTransaction } from '../nftables/rules/table.ts';
import { DONE, readProcessStatus, type Trial } from './check.ts';
import { NOBODY } from './sample.ts';

const PROGRAM_TIMEOUT_MS = 30_000;
const TRIAL_SERVER: IpvsServiceKey = { protocol: 'TCP', ip: NOBODY.IPv4, port: 20_000 };
const TRIAL_LINK = 'junction-trial';
const TRIAL_SET = { type: 'hash:ip', hashSize: 64, maxElements: 64 } as const;
const NO_IPVS: Trial = { state: 'refused', reason: 'the kernel has no IPVS' };
const REMOVALS = 10;
const REMOVAL_PAUSE_MS = 20;

type SysctlLook =
  | { readonly state: 'value'; readonly value: string; readonly writable: boolean }
  | { readonly state: 'absent' }
  | { readonly state: 'unreadable'; readonly reason: string };

export type TrialClient = Pick<
  IptablesClient,
  'family' | 'version' | 'variant' | 'reason' | 'features' | 'readTable' | 'restore'
>;

/** `operation`: the one that was refused, if the kernel says. */
export type TableTrial = Trial & { readonly operation?: TableOperation | undefined };

type MachineOptions = Pick<ValidConfig['junction'], 'iptablesVariant' | 'sysctlRoot'>;
export type Machine = ReturnType<typeof systemMachine>;

export function systemMachine(
  { iptablesVariant: variant, sysctlRoot }: MachineOptions,
  runner: CommandRunner = run,
) {
  const limited = timeLimited(runner, PROGRAM_TIMEOUT_MS);
  const loads = new Map<string, Promise<Trial>>();
  return {
    /** `6.1.0-18-amd64` */
    kernelRelease: release(),
    /** /proc/self/status */
    processStatus: readProcessStatus,
    hasIpv6: isIpv6Enabled,
    /** Whether /lib/modules has the modules of the running kernel. */
    hasModuleFolder: () => existsSync(join('/lib/modules', release())),
    /** Tries each module once. */
    loadModule: (name: string): Promise<Trial> => {
      const load = loads.get(name) ?? loadModule(name, limited);
      loads.set(name, load);
      return load;
    },
    sysctl: (name: string): SysctlLook => sysctl(name, sysctlRoot ?? '/proc/sys'),
    openClient: (family: Family): Promise<TrialClient> => IptablesClient.open({ family, variant, runner }),

    /** Commits the transaction to a table that no other program has, and deletes the table. */
    tryTable: (family: Family, transaction: TableTransaction): Promise<TableTrial> =>
      attempt<TableTrial>(NETLINK_NETFILTER, async (channel) => {
        const client = new NetlinkNftTables(family, channel).table(TRIAL_TABLE);
        // One that a killed run left.
        await client.commit([{ kind: 'deleteTable' }]);
        const outcome = await client.commit(transaction);
        if (outcome.state === 'refused')
          return { state: 'refused', reason: outcome.name, operation: outcome.operation };
        await client.commit([{ kind: 'deleteTable' }]);
        return DONE;
      }),

    /** The kernel loads the type's module if it can. */
    setType: (type: IpsetType, family: Family): Promise<Trial> =>
      attempt(NETLINK_NETFILTER, async (channel) => {
        const support = await setSupport(channel, type, family);
        return support.state === 'present' ? DONE : { state: 'refused', reason: support.reason };
      }),
    /** A set of type hash:ip, until `removeSet`. */
    makeSet: (name: string, family: Family): Promise<Trial> =>
      attempt(NETLINK_NETFILTER, async (channel) => {
        const support = await setSupport(channel, TRIAL_SET.type, family);
        if (support.state === 'absent') return { state: 'refused', reason: support.reason };
        return make(channel, createSet(name, { ...TRIAL_SET, family }, support.revision));
      }),
    /** The kernel frees a set a moment after the last rule that matches it. */
    removeSet: (name: string): Promise<void> =>
      withChannel(NETLINK_NETFILTER, async (channel) => {
        for (let tries = 0; tries < REMOVALS; tries++) {
          const [outcome] = await channel.apply([destroySet(name)]);
          if (outcome?.state !== 'refused') return;
          await wait(systemClock, REMOVAL_PAUSE_MS);
        }
      }),

    findIpvs: (): Promise<Trial> =>
      attempt(NETLINK_GENERIC, async (generic) => ((await findIpvs(generic)) === undefined ? NO_IPVS : DONE)),
    tryScheduler: (scheduler: string): Promise<Trial> =>
      attempt(NETLINK_GENERIC, async (generic) => {
        const ipvs = await findIpvs(generic);
        if (ipvs === undefined) return NO_IPVS;
        const service = { ...TRIAL_SERVER, scheduler, flags: 0, timeout: 0, clientPrefix: 32 };
        return makeAndDelete(generic, newService(ipvs, service), deleteService(ipvs, TRIAL_SERVER));
      }),
    /** The device of the IPVS mode. */
    findDevice: (): Promise<{ readonly kind: string | undefined } | undefined> =>
      withChannel(NETLINK_ROUTE, findDevice),
    tryLink: (kind: string): Promise<Trial> =>
      attempt(NETLINK_ROUTE, (route) =>
        makeAndDelete(route, newLink(TRIAL_LINK, kind), deleteLink(TRIAL_LINK)),
      ),
    /** Asks for flows to an address that no packet has. */
    tryConntrack: (family: Family): Trial => {
      const question = { protocol: 'SCTP', address: NOBODY.IPv4, port: 65_535 } as const;
      const reply = requestOnce(NETLINK_NETFILTER, getFlows(family, question));
      if (typeof reply === 'string') return { state: 'refused', reason: reply };
      return reply.kind === 'answered' ? DONE : { state: 'refused', reason: reply.name };
    },
  };
}

async function loadModule(name: string, runner: CommandRunner): Promise<Trial> {
  try {
    const { code, stderr } = await runner(['modprobe', '--', name]);
    return code === 0 ? DONE : { state: 'refused', reason: stderr.trim() };
  } catch (error) {
    return refusedBy(error);
  }
}

function sysctl(name: string, root: string): SysctlLook {
  try {
    const value = readSysctl(name, { root });
    return { state: 'value', value, writable: isWritable(join(root, name)) };
  } catch (error) {
    if (isJunctionError(error, 'SYSCTL_MISSING')) return { state: 'absent' };
    return { state: 'unreadable', reason: refusedBy(error).reason };
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, access.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** First deletes what a killed run left, which would be taken for proof. */
async function makeAndDelete(channel: NetlinkChannel, making: Change, deletion: Change): Promise<Trial> {
  await channel.apply([deletion]);
  const made = await make(channel, making);
  await channel.apply([deletion]);
  return made;
}

async function make(channel: NetlinkChannel, change: Change): Promise<Trial> {
  const [outcome] = await channel.apply([change]);
  if (outcome?.state === 'refused') return { state: 'refused', reason: outcome.name };
  return outcome?.state === 'absent' ? { state: 'refused', reason: 'it is not there' } : DONE;
}

type Refused = Extract<Trial, { state: 'refused' }>;

/** A kernel without a whole netlink protocol refuses the socket. */
async function attempt<T extends Trial = Trial>(
  protocol: number,
  ask: (channel: NetlinkChannel) => Promise<T>,
): Promise<T | Refused> {
  try {
    return await withChannel(protocol, ask);
  } catch (error) {
    return refusedBy(error);
  }
}

/** Other failures than expected ones are thrown again. */
function refusedBy(error: unknown): Refused {
  if (isJunctionError(error)) return { state: 'refused', reason: error.message };
  throw error;
}
