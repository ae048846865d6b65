/**
 * All that the checks may do to the machine that we run on, in the network namespace of this thread: reads, and trials
 * that leave nothing behind.
 */
import { accessSync, constants as access, existsSync } from 'node:fs';
import { release } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ValidConfig } from '../../config/effective.ts';
import { isJunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import { applyChange, type Change } from '../../netlink/batch.ts';
import { directChannel } from '../../netlink/channel.ts';
import { ConntrackTable } from '../../netlink/conntrack.ts';
import {
  createSet,
  destroySet,
  type IpsetSupport,
  type IpsetType,
  probeSetType,
} from '../../netlink/ipset.ts';
import {
  deleteService,
  findIpvsFamily,
  type IpvsServiceKey,
  listServices,
  newService,
} from '../../netlink/ipvs.ts';
import { deleteLink, newLink, readLink } from '../../netlink/rtnetlink.ts';
import { deleteNfacct, ensureNfacct, readNfacct } from '../../netlink/nfacct.ts';
import { NETLINK_GENERIC, NETLINK_NETFILTER, NETLINK_ROUTE, NetlinkSocket } from '../../netlink/socket.ts';
import { type CommandRunner, run, timeLimited } from '../../system/processes.ts';
import { readSysctl } from '../../system/sysctl.ts';
import { IptablesClient } from '../iptables/client.ts';
import { isIpv6Enabled } from '../iptables/families.ts';
import { OWNED_TRIAL_TABLE, TRIAL_TABLE } from '../nftables/cleanup.ts';
import { NetlinkNftClient } from '../nftables/client.ts';
import { type NftTrial, type TrialTable, writeAndDelete } from '../nftables/trialTable.ts';
import { readProcessStatus } from './capabilities.ts';
import { DONE, type Trial } from './check.ts';
import { NOBODY } from './sample.ts';

const PROGRAM_TIMEOUT_MS = 30_000;
const TRIAL_SERVER: IpvsServiceKey = { protocol: 'TCP', ip: NOBODY.IPv4, port: 20_000 };
const TRIAL_LINK = 'junction-trial';
const TRIAL_SET = { type: 'hash:ip', hashSize: 64, maxElements: 64 } as const;
const NO_IPVS: Trial = { state: 'refused', reason: 'the kernel has no IPVS' };
/** What a rule referred to is freed a moment after the rule. */
const REMOVALS = 10;
const REMOVAL_PAUSE_MS = 20;

type SysctlLook =
  | { readonly state: 'value'; readonly value: string; readonly writable: boolean }
  | { readonly state: 'absent' }
  | { readonly state: 'unreadable'; readonly reason: string };

/** What the checks need of a client of iptables. */
export type TrialClient = Pick<
  IptablesClient,
  'family' | 'version' | 'variant' | 'reason' | 'features' | 'programs' | 'restore'
>;

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
    run: limited,
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
    tryTable,

    setType: (type: IpsetType, family: Family): IpsetSupport => {
      try {
        return withSocket(NETLINK_NETFILTER, (socket) => probeSetType(socket, type, family));
      } catch (error) {
        return { state: 'absent', module: 'ip_set', reason: messageOf(error) };
      }
    },
    /** A set of type hash:ip, until `removeSet`. */
    makeSet: (name: string, family: Family): Trial =>
      attempt(NETLINK_NETFILTER, (socket) => {
        const support = probeSetType(socket, TRIAL_SET.type, family);
        if (support.state === 'absent') return { state: 'refused', reason: support.reason };
        return make(socket, createSet(name, { ...TRIAL_SET, family }, support.revision));
      }),
    removeSet: (name: string): Promise<void> =>
      untilDone(() => {
        const { state } = withSocket(NETLINK_NETFILTER, (socket) => applyChange(socket, destroySet(name)));
        return state !== 'refused';
      }),
    /** A counter for the match nfacct, until `removeCounter`. */
    makeCounter: (name: string): Trial => {
      const outcome = ensureNfacct(name);
      return outcome.state === 'unavailable' ? { state: 'refused', reason: outcome.reason } : DONE;
    },
    removeCounter: (name: string): Promise<void> =>
      untilDone(() => deleteNfacct(name) || readNfacct(name) === undefined),

    findIpvs: (): Trial =>
      attempt(NETLINK_GENERIC, (socket) => (findIpvsFamily(socket).state === 'present' ? DONE : NO_IPVS)),
    schedulersInUse: (): readonly string[] =>
      withIpvs((socket, ipvs) => listServices(socket, ipvs).map(({ scheduler }) => scheduler)) ?? [],
    tryScheduler: (scheduler: string): Trial => {
      const service = { ...TRIAL_SERVER, scheduler, flags: 0, timeout: 0, clientPrefix: 32 };
      return (
        withIpvs((socket, ipvs) =>
          makeAndDelete(socket, newService(ipvs, service), deleteService(ipvs, TRIAL_SERVER)),
        ) ?? NO_IPVS
      );
    },
    link: (name: string): { readonly kind: string | undefined } | undefined =>
      withSocket(NETLINK_ROUTE, (socket) => readLink(socket, name)),
    tryLink: (kind: string): Trial =>
      attempt(NETLINK_ROUTE, (socket) =>
        makeAndDelete(socket, newLink(TRIAL_LINK, kind), deleteLink(TRIAL_LINK)),
      ),
    tryConntrack,
  };
}

async function loadModule(name: string, runner: CommandRunner): Promise<Trial> {
  try {
    const { code, stderr } = await runner(['modprobe', '--', name]);
    return code === 0 ? DONE : { state: 'refused', reason: stderr.trim() };
  } catch (error) {
    return { state: 'refused', reason: messageOf(error) };
  }
}

function sysctl(name: string, root: string): SysctlLook {
  try {
    const value = readSysctl(name, { root });
    return { state: 'value', value, writable: isWritable(join(root, name)) };
  } catch (error) {
    if (isJunctionError(error, 'SYSCTL_MISSING')) return { state: 'absent' };
    return { state: 'unreadable', reason: messageOf(error) };
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

/** Writes a table of nftables that no other program has, reads it back, and deletes it. */
async function tryTable(family: Family, table: TrialTable): Promise<NftTrial> {
  let socket: NetlinkSocket | undefined;
  try {
    socket = NetlinkSocket.open(NETLINK_NETFILTER);
    const name = table.isOwned ? OWNED_TRIAL_TABLE : TRIAL_TABLE;
    return await writeAndDelete(new NetlinkNftClient(family, directChannel(socket), name), table);
  } catch (error) {
    return { state: 'refused', reason: messageOf(error) };
  } finally {
    socket?.close();
  }
}

/** Asks for flows to an address that no packet has. */
function tryConntrack(family: Family): Trial {
  let table: ConntrackTable | undefined;
  try {
    table = new ConntrackTable(family);
    const flows = table.flows({ protocol: 'SCTP', address: NOBODY.IPv4, port: 65_535 }, () => false);
    for (;;) {
      const { done, value } = flows.next();
      if (!done) continue;
      return value.kind === 'answered' ? DONE : { state: 'refused', reason: value.name };
    }
  } catch (error) {
    return { state: 'refused', reason: messageOf(error) };
  } finally {
    table?.close();
  }
}

/** First deletes one that a killed run left, which would be taken for proof. */
function makeAndDelete(socket: NetlinkSocket, making: Change, deletion: Change): Trial {
  applyChange(socket, deletion);
  const made = make(socket, making);
  applyChange(socket, deletion);
  return made;
}

function make(socket: NetlinkSocket, change: Change): Trial {
  const outcome = applyChange(socket, change);
  if (outcome.state === 'refused') return { state: 'refused', reason: outcome.name };
  return outcome.state === 'absent' ? { state: 'refused', reason: 'it is not there' } : DONE;
}

function withIpvs<T>(ask: (socket: NetlinkSocket, ipvs: number) => T): T | undefined {
  return withSocket(NETLINK_GENERIC, (socket) => {
    const lookup = findIpvsFamily(socket);
    return lookup.state === 'present' ? ask(socket, lookup.id) : undefined;
  });
}

function withSocket<T>(protocol: number, ask: (socket: NetlinkSocket) => T): T {
  const socket = NetlinkSocket.open(protocol);
  try {
    return ask(socket);
  } finally {
    socket.close();
  }
}

/** A kernel without a whole netlink protocol refuses the socket. */
function attempt(protocol: number, ask: (socket: NetlinkSocket) => Trial): Trial {
  try {
    return withSocket(protocol, ask);
  } catch (error) {
    return { state: 'refused', reason: messageOf(error) };
  }
}

/** Of an expected failure; others are thrown again. */
function messageOf(error: unknown): string {
  if (isJunctionError(error)) return error.message;
  throw error;
}

async function untilDone(isDone: () => boolean): Promise<void> {
  for (let count = 0; count < REMOVALS && !isDone(); count++) await sleep(REMOVAL_PAUSE_MS);
}
