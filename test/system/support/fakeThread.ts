/** Links and addresses as the kernel would tell of them, in its own bytes, without a kernel. */
import { constants } from 'node:os';
import type { NetlinkChannel } from '../../../src/netlink/channel.ts';
import { decodeMessages, type Message, MessageWriter } from '../../../src/netlink/codec.ts';
import { ipBytes } from '../../../src/netlink/inet.ts';
import type { Watch, WatchHandler } from '../../../src/netlink/thread.ts';
import { familyOf } from '../../../src/model/ip.ts';
import { ip } from '../../plan/given.ts';

const RTM_NEWLINK = 16;
const RTM_DELLINK = 17;
const RTM_NEWADDR = 20;
const RTM_DELADDR = 21;
const IFLA_IFNAME = 3;
const IFLA_LINKINFO = 18;
const IFLA_INFO_KIND = 1;
const IFA_ADDRESS = 1;
const IFA_LOCAL = 2;
const IFF_UP = 1;
const SCOPES = { global: 0, link: 253, host: 254 } as const;

export interface FakeLink {
  readonly index: number;
  readonly name: string;
  readonly isUp?: boolean;
}

export interface FakeAddress {
  readonly link: number;
  readonly ip: string;
  readonly scope?: keyof typeof SCOPES;
}

export class FakeThread {
  /** The only one that anybody asks for. */
  device: FakeLink | undefined;
  addresses: readonly FakeAddress[] = [];
  readings = 0;
  /** Called at every reading of the addresses, before it is answered. */
  duringReading: () => void = () => {};
  isRefusing = false;
  isClosed = false;
  #handler: WatchHandler | undefined;

  async watch(_protocol: number, _groups: readonly number[], handler: WatchHandler): Promise<Watch> {
    this.#handler = handler;
    return {
      setFilter: async () => {},
      close: async () => {
        this.isClosed = true;
      },
    };
  }

  channel(): NetlinkChannel {
    return {
      apply: async () => [],
      requestAll: async () => [],
      request: async () =>
        this.device
          ? { kind: 'answered', messages: [linkMessage(RTM_NEWLINK, this.device)], interrupted: false }
          : { kind: 'refused', errno: constants.errno.ENODEV, name: 'ENODEV' },
      dumpAll: async () => {
        this.readings++;
        const messages = this.addresses.map((address) => addressMessage(RTM_NEWADDR, address));
        this.duringReading();
        return this.isRefusing
          ? [{ kind: 'refused', errno: constants.errno.ENOBUFS, name: 'ENOBUFS' }]
          : [{ kind: 'answered', messages }];
      },
    };
  }

  tell(...messages: readonly Message[]): void {
    this.#handler?.messages(messages);
  }

  lose(): void {
    this.#handler?.lost();
  }
}

export const newLink = (link: FakeLink): Message => linkMessage(RTM_NEWLINK, link);
export const delLink = (link: FakeLink): Message => linkMessage(RTM_DELLINK, link);
export const newAddress = (address: FakeAddress): Message => addressMessage(RTM_NEWADDR, address);
export const delAddress = (address: FakeAddress): Message => addressMessage(RTM_DELADDR, address);

function linkMessage(type: number, { index, name, isUp = false }: FakeLink): Message {
  const header = new Uint8Array(16);
  header.set(new Uint8Array(Uint32Array.of(index, isUp ? IFF_UP : 0).buffer), 4);
  return message(type, (writer) =>
    writer
      .raw(header)
      .string(IFLA_IFNAME, name)
      .nested(IFLA_LINKINFO, (info) => info.string(IFLA_INFO_KIND, 'dummy')),
  );
}

function addressMessage(type: number, { link, ip: text, scope = 'global' }: FakeAddress): Message {
  const address = ip(text);
  const bytes = ipBytes(address);
  const header = new Uint8Array(8);
  header.set([familyOf(address) === 'IPv4' ? 2 : 10, bytes.length * 8, 0, SCOPES[scope]]);
  header.set(new Uint8Array(Uint32Array.of(link).buffer), 4);
  return message(type, (writer) =>
    writer.raw(header).attribute(IFA_LOCAL, bytes).attribute(IFA_ADDRESS, bytes),
  );
}

function message(type: number, payload: (writer: MessageWriter) => void): Message {
  const bytes = new MessageWriter().message({ type, flags: 0, sequence: 0 }, payload).finish();
  const [decoded] = decodeMessages(bytes);
  if (!decoded) throw new Error('no message');
  return decoded;
}
