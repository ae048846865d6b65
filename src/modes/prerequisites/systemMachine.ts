/** The machine that we run on, in the network namespace of this thread. */
import { accessSync, constants as access, existsSync } from 'node:fs';
import { release } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isJunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import { applyChange, type Change } from '../../netlink/batch.ts';
import { directChannel } from '../../netlink/channel.ts';
import { ConntrackTable } from '../../netlink/conntrack.ts';
import { createSet, destroySet, probeSetType } from '../../netlink/ipset.ts';
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
import type { VariantChoice } from '../iptables/variant.ts';
import { OWNED_TRIAL_TABLE, TRIAL_TABLE } from '../nftables/cleanup.ts';
import { NetlinkNftClient } from '../nftables/client.ts';
import { type NftTrial, type TrialTable, writeAndDelete } from '../nftables/trialTable.ts';
import { readProcessStatus } from './capabilities.ts';
import { DONE, type Machine, type SysctlLook, type Trial } from './machine.ts';
import { NOBODY } from './sample.ts';

const PROGRAM_TIMEOUT_MS = 30_000;
const TRIAL_SERVER: IpvsServiceKey = { protocol: 'TCP', ip: NOBODY.IPv4, port: 20_000 };
const TRIAL_LINK = 'junction-trial';
const TRIAL_SET = { type: 'hash:ip', hashSize: 64, maxElements: 64 } as const;
const NO_IPVS: Trial = { state: 'refused', reason: 'the kernel has no IPVS' };
/** What a rule referred to is freed a moment after the rule. */
const REMOVALS = 10;
const REMOVAL_PAUSE_MS = 20;

interface SystemMachineOptions {
  readonly variant: VariantChoice;
  readonly hasIpv6: () => boolean;
  readonly runner?: CommandRunner | undefined;
  /** Instead of /proc/sys. */
  readonly sysctlRoot?: string | undefined;
}

export function systemMachine(options: SystemMachineOptions): Machine {
  const { variant, hasIpv6, runner = run, sysctlRoot = '/proc/sys' } = options;
  const limited = timeLimited(runner, PROGRAM_TIMEOUT_MS);
  const loads = new Map<string, Promise<Trial>>();
  return {
    kernelRelease: release(),
    run: limited,
    processStatus: readProcessStatus,
    hasIpv6,
    hasModuleFolder: () => existsSync(join('/lib/modules', release())),
    loadModule: (name) => {
      const load = loads.get(name) ?? loadModule(name, limited);
      loads.set(name, load);
      return load;
    },
    sysctl: (name) => sysctl(name, sysctlRoot),
    openClient: (family) => IptablesClient.open({ family, variant, runner }),
    tryTable,
    setType: (type, family) => {
      try {
        return withSocket(NETLINK_NETFILTER, (socket) => probeSetType(socket, type, family));
      } catch (error) {
        return { state: 'absent', module: 'ip_set', reason: messageOf(error) };
      }
    },
    makeSet: (name, family) =>
      attempt(NETLINK_NETFILTER, (socket) => {
        const support = probeSetType(socket, TRIAL_SET.type, family);
        if (support.state === 'absent') return { state: 'refused', reason: support.reason };
        return make(socket, createSet(name, { ...TRIAL_SET, family }, support.revision));
      }),
    removeSet: (name) =>
      untilDone(() => {
        const { state } = withSocket(NETLINK_NETFILTER, (socket) => applyChange(socket, destroySet(name)));
        return state !== 'refused';
      }),
    makeCounter: (name) => {
      const outcome = ensureNfacct(name);
      return outcome.state === 'unavailable' ? { state: 'refused', reason: outcome.reason } : DONE;
    },
    removeCounter: (name) => untilDone(() => deleteNfacct(name) || readNfacct(name) === undefined),
    findIpvs: () =>
      attempt(NETLINK_GENERIC, (socket) => (findIpvsFamily(socket).state === 'present' ? DONE : NO_IPVS)),
    schedulersInUse: () =>
      withIpvs((socket, ipvs) => listServices(socket, ipvs).map(({ scheduler }) => scheduler)) ?? [],
    tryScheduler: (scheduler) => {
      const service = { ...TRIAL_SERVER, scheduler, flags: 0, timeout: 0, clientPrefix: 32 };
      return (
        withIpvs((socket, ipvs) =>
          makeAndDelete(socket, newService(ipvs, service), deleteService(ipvs, TRIAL_SERVER)),
        ) ?? NO_IPVS
      );
    },
    link: (name) => withSocket(NETLINK_ROUTE, (socket) => readLink(socket, name)),
    tryLink: (kind) =>
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
