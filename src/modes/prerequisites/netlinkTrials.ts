/** Trials by netlink: something is made and taken away at once, or something is asked for that nobody has. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isJunctionError } from '../../errors.ts';
import { type Family, type Ip, parseIp } from '../../model/ip.ts';
import { applyChange, type Change } from '../../netlink/batch.ts';
import { ConntrackTable } from '../../netlink/conntrack.ts';
import { directChannel } from '../../netlink/channel.ts';
import { createSet, destroySet, type IpsetSupport, probeSetType } from '../../netlink/ipset.ts';
import type { IpsetType } from '../../netlink/ipsetEntry.ts';
import {
  findIpvsFamily,
  deleteService,
  type IpvsServiceKey,
  listServices,
  newService,
} from '../../netlink/ipvs.ts';
import { deleteLink, newLink, readLink } from '../../netlink/rtnetlink.ts';
import { deleteNfacct, ensureNfacct, readNfacct } from '../../netlink/nfacct.ts';
import { NETLINK_GENERIC, NETLINK_NETFILTER, NETLINK_ROUTE, NetlinkSocket } from '../../netlink/socket.ts';
import { OWNED_TRIAL_TABLE, TRIAL_TABLE } from '../nftables/cleanup.ts';
import { NetlinkNftClient } from '../nftables/client.ts';
import { DONE, type Machine, type Trial } from './machine.ts';
import { type TableTrial, type TrialTable, tryTable } from './nftTrial.ts';

type NetlinkTrials = Pick<
  Machine,
  | 'setType'
  | 'makeSet'
  | 'removeSet'
  | 'makeCounter'
  | 'removeCounter'
  | 'tryTable'
  | 'findIpvs'
  | 'schedulersInUse'
  | 'tryScheduler'
  | 'link'
  | 'tryLink'
  | 'tryConntrack'
>;

/** Reserved for documentation, so nobody's: RFC 5737. */
const NOBODY = known('198.51.100.0');
const TRIAL_SERVER: IpvsServiceKey = { protocol: 'TCP', ip: NOBODY, port: 20_000 };
const NO_IPVS: Trial = { state: 'refused', reason: 'the kernel has no IPVS' };
const TRIAL_LINK = 'junction-trial';
const TRIAL_SET_SIZE = { hashSize: 64, maxElements: 64 };
/** What a rule referred to is freed a moment after the rule. */
const REMOVALS = 10;
const REMOVAL_PAUSE_MS = 20;

export const netlinkTrials: NetlinkTrials = {
  setType,
  makeSet,
  removeSet: async (name) =>
    untilDone(() => {
      const { state } = withSocket(NETLINK_NETFILTER, (socket) => applyChange(socket, destroySet(name)));
      return state !== 'refused';
    }),
  makeCounter: (name) => {
    const outcome = ensureNfacct(name);
    return outcome.state === 'unavailable' ? { state: 'refused', reason: outcome.reason } : DONE;
  },
  removeCounter: async (name) => untilDone(() => deleteNfacct(name) || readNfacct(name) === undefined),
  tryTable: tryTableBySocket,
  findIpvs: () =>
    attempt(NETLINK_GENERIC, (socket) => (findIpvsFamily(socket).state === 'present' ? DONE : NO_IPVS)),
  schedulersInUse: () =>
    withIpvs((socket, ipvs) => listServices(socket, ipvs).map(({ scheduler }) => scheduler)) ?? [],
  tryScheduler,
  link: (name) => withSocket(NETLINK_ROUTE, (socket) => readLink(socket, name)),
  tryLink: (kind) =>
    attempt(NETLINK_ROUTE, (socket) => {
      // One that a killed run left would be taken for proof.
      applyChange(socket, deleteLink(TRIAL_LINK));
      const made = make(socket, newLink(TRIAL_LINK, kind));
      applyChange(socket, deleteLink(TRIAL_LINK));
      return made;
    }),
  tryConntrack,
};

function setType(type: IpsetType, family: Family): IpsetSupport {
  try {
    return withSocket(NETLINK_NETFILTER, (socket) => probeSetType(socket, type, family));
  } catch (error) {
    if (isJunctionError(error)) return { state: 'absent', module: 'ip_set', reason: error.message };
    throw error;
  }
}

function makeSet(name: string, family: Family): Trial {
  return attempt(NETLINK_NETFILTER, (socket) => {
    const type = 'hash:ip';
    const support = probeSetType(socket, type, family);
    if (support.state === 'absent') return { state: 'refused', reason: support.reason };
    return make(socket, createSet(name, { type, family, ...TRIAL_SET_SIZE }, support.revision));
  });
}

async function tryTableBySocket(family: Family, table: TrialTable): Promise<TableTrial> {
  let socket: NetlinkSocket | undefined;
  try {
    socket = NetlinkSocket.open(NETLINK_NETFILTER);
    const name = table.isOwned ? OWNED_TRIAL_TABLE : TRIAL_TABLE;
    return await tryTable(new NetlinkNftClient(family, directChannel(socket), name), table);
  } catch (error) {
    if (isJunctionError(error)) return { state: 'refused', reason: error.message };
    throw error;
  } finally {
    socket?.close();
  }
}

function tryScheduler(scheduler: string): Trial {
  const service = { ...TRIAL_SERVER, scheduler, flags: 0, timeout: 0, clientPrefix: 32 };
  const trial = withIpvs((socket, ipvs) => {
    applyChange(socket, deleteService(ipvs, TRIAL_SERVER));
    const made = make(socket, newService(ipvs, service));
    applyChange(socket, deleteService(ipvs, TRIAL_SERVER));
    return made;
  });
  return trial ?? NO_IPVS;
}

/** Asks for flows to an address that nobody has. */
function tryConntrack(family: Family): Trial {
  let table: ConntrackTable | undefined;
  try {
    table = new ConntrackTable(family);
    const flows = table.flows({ protocol: 'SCTP', address: NOBODY, port: 65_535 }, () => false);
    for (;;) {
      const { done, value } = flows.next();
      if (!done) continue;
      return value.kind === 'answered' ? DONE : { state: 'refused', reason: value.name };
    }
  } catch (error) {
    return refusal(error);
  } finally {
    table?.close();
  }
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

function attempt(protocol: number, ask: (socket: NetlinkSocket) => Trial): Trial {
  try {
    return withSocket(protocol, ask);
  } catch (error) {
    return refusal(error);
  }
}

/** A kernel without a whole netlink protocol refuses the socket. */
function refusal(error: unknown): Trial {
  if (isJunctionError(error)) return { state: 'refused', reason: error.message };
  throw error;
}

async function untilDone(isDone: () => boolean): Promise<void> {
  for (let count = 0; count < REMOVALS && !isDone(); count++) await sleep(REMOVAL_PAUSE_MS);
}

function known(text: string): Ip {
  const ip = parseIp(text);
  if (ip === undefined) throw new Error(`not an address: ${text}`);
  return ip;
}
