/** Questions to the kernel about one thing each, never a whole table: an entry of a set, a virtual server, an address. */
import { constants } from 'node:os';
import { type Family, hostPort, type Ip } from '../../model/ip.ts';
import { messagesOf, type NetlinkChannel } from '../../netlink/channel.ts';
import { decodeSetType, headerRequest, testEntry } from '../../netlink/ipset.ts';
import {
  decodeDestination,
  decodeDestinationCounters,
  decodeService,
  decodeServiceCounters,
  getDestinations,
  getMarkedService,
  getService,
} from '../../netlink/ipvs.ts';
import { decodeIsLocal, getRoute } from '../../netlink/rtnetlink.ts';
import { JunctionError } from '../../errors.ts';
import { findIpvs, type IpvsChannels } from './client.ts';
import type { ServerKey } from './rules/compile.ts';
import type { SetEntry } from './rules/sets.ts';
import type { WalkedDestination, WalkedServer } from './rules/walk.ts';

export interface SetQuestion {
  readonly set: string;
  readonly entry: SetEntry;
}

/** Each answer is at the place of its question. */
export interface IpvsLookups {
  hasEntries(questions: readonly SetQuestion[]): Promise<readonly boolean[]>;
  typesOf(sets: readonly string[]): Promise<readonly (string | undefined)[]>;
  servers(keys: readonly ServerKey[]): Promise<readonly (WalkedServer | undefined)[]>;
  /** Whether another program has virtual servers for these firewall marks. */
  haveMarks(marks: readonly number[]): Promise<readonly boolean[]>;
  /** Whether the kernel delivers what is for an address here: its device may have it and be broken. */
  areLocal(ips: readonly Ip[]): Promise<readonly boolean[]>;
}

export class NetlinkLookups implements IpvsLookups {
  readonly #family: Family;
  readonly #channels: IpvsChannels;
  #ipvs: Promise<number | undefined> | undefined;

  constructor(family: Family, channels: IpvsChannels) {
    this.#family = family;
    this.#channels = channels;
  }

  async hasEntries(questions: readonly SetQuestion[]): Promise<readonly boolean[]> {
    const tests = questions.map(({ set, entry }) => testEntry(set, entry));
    const outcomes = await this.#channels.netfilter.apply(tests);
    return outcomes.map((outcome, index) => {
      if (outcome.state !== 'refused') return outcome.state === 'done';
      const { set = '' } = questions[index] ?? {};
      throw new JunctionError('NETLINK_FAILED', `netlink: cannot test an entry of ${set}: ${outcome.name}`);
    });
  }

  async typesOf(sets: readonly string[]): Promise<readonly (string | undefined)[]> {
    const replies = await this.#channels.netfilter.requestAll(sets.map(headerRequest));
    return replies.map((reply) => {
      if (reply.kind === 'refused' && reply.errno === constants.errno.ENOENT) return undefined;
      const [message] = messagesOf(reply, 'the types of sets');
      return message && decodeSetType(message.payload);
    });
  }

  async servers(keys: readonly ServerKey[]): Promise<readonly (WalkedServer | undefined)[]> {
    const ipvs = await this.#number();
    if (ipvs === undefined) return keys.map(() => undefined);
    return Promise.all(keys.map((key) => readServer(this.#channels.generic, ipvs, key)));
  }

  async haveMarks(marks: readonly number[]): Promise<readonly boolean[]> {
    const ipvs = await this.#number();
    if (ipvs === undefined) return marks.map(() => false);
    const requests = marks.map((mark) => getMarkedService(ipvs, this.#family, mark));
    const replies = await this.#channels.generic.requestAll(requests);
    return replies.map(({ kind }) => kind === 'answered');
  }

  /** `undefined`: the kernel has no IPVS. */
  #number(): Promise<number | undefined> {
    this.#ipvs ??= findIpvs(this.#channels.generic);
    return this.#ipvs;
  }

  async areLocal(ips: readonly Ip[]): Promise<readonly boolean[]> {
    const replies = await this.#channels.route.requestAll(ips.map((ip) => getRoute(ip)));
    return replies.map((reply) => {
      if (reply.kind === 'refused') return false; // no route at all
      const [message] = reply.messages;
      return message !== undefined && decodeIsLocal(message.payload);
    });
  }
}

async function readServer(
  generic: NetlinkChannel,
  ipvs: number,
  key: ServerKey,
): Promise<WalkedServer | undefined> {
  const reply = await generic.request(getService(ipvs, key));
  if (reply.kind === 'refused' && reply.errno === constants.errno.ESRCH) return undefined;
  const [message] = messagesOf(reply, 'a virtual server');
  const service = message && decodeService(message.payload);
  if (!service) return undefined;
  const { scheduler, flags, timeout } = service;
  const { packets, connections } = decodeServiceCounters(message.payload);
  const destinations = await readServerDestinations(generic, ipvs, key);
  return { scheduler, flags, timeout, destinations, ...counted({ packets, connections }) };
}

async function readServerDestinations(
  generic: NetlinkChannel,
  ipvs: number,
  key: ServerKey,
): Promise<readonly WalkedDestination[]> {
  const [reply] = await generic.dumpAll([getDestinations(ipvs, key)]);
  return messagesOf(reply, 'the endpoints of a virtual server').map(({ payload }) => {
    const { ip, port, weight, activeConnections, inactiveConnections } = decodeDestination(payload);
    return {
      ip,
      port,
      key: hostPort(ip, port),
      weight,
      activeConnections,
      inactiveConnections,
      ...counted(decodeDestinationCounters(payload)),
    };
  });
}

type Counted = Pick<WalkedServer, 'packets' | 'connections'>;

function counted({ packets, connections }: ReturnType<typeof decodeServiceCounters>): Counted {
  return {
    ...(packets !== undefined && { packets }),
    ...(connections !== undefined && { connections }),
  };
}
