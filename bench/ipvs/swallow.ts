/** Channels to a kernel that has nothing, takes everything, and does nothing with it. */
import { constants } from 'node:os';
import type { IpvsChannels } from '../../src/modes/ipvs/client.ts';
import { JobChannel, type NetlinkChannel } from '../../src/netlink/channel.ts';
import { MessageWriter } from '../../src/netlink/codec.ts';
import { u16, u8 } from '../../src/netlink/kinds.ts';
import type { NetlinkReply } from '../../src/netlink/socket.ts';

const CTRL_ATTR_FAMILY_ID = 1;
const IPSET_ATTR_REVISION = 4;
const IFLA_IFNAME = 3;
const HEADER_BYTES = { generic: 4, netfilter: 4, link: 16 } as const;
const ANY_NUMBER = 5;

export class SwallowingChannels implements IpvsChannels {
  #bytes = 0;
  #hasDevice = false;
  readonly #writing = new JobChannel(({ bytes }) => {
    this.#bytes += bytes.length;
    return Promise.resolve();
  });

  readonly generic = this.#channel(
    () => answer(HEADER_BYTES.generic, (writer) => u16.write(writer, CTRL_ATTR_FAMILY_ID, ANY_NUMBER)),
    { kind: 'answered', messages: [], interrupted: false },
  );

  readonly netfilter = this.#channel(
    () => answer(HEADER_BYTES.netfilter, (writer) => u8.write(writer, IPSET_ATTR_REVISION, ANY_NUMBER)),
    refusal('ENOENT'),
  );

  readonly route = this.#channel(() => {
    if (this.#hasDevice)
      return answer(HEADER_BYTES.link, (writer) => writer.string(IFLA_IFNAME, 'kube-ipvs0'));
    this.#hasDevice = true; // asked for once before it is made
    return refusal('ENODEV');
  }, refusal('ENOENT'));

  takeBytes(): number {
    const bytes = this.#bytes;
    this.#bytes = 0;
    return bytes;
  }

  #channel(reply: () => NetlinkReply, table: NetlinkReply): NetlinkChannel {
    return {
      apply: (changes) => this.#writing.apply(changes),
      request: () => Promise.resolve(reply()),
      requestAll: (requests) => Promise.resolve(requests.map(() => reply())),
      dumpAll: (requests) => Promise.resolve(requests.map(() => table)),
    };
  }
}

function answer(headerBytes: number, body: (writer: MessageWriter) => void): NetlinkReply {
  const writer = new MessageWriter();
  body(writer.raw(new Uint8Array(headerBytes)));
  const message = { type: 0, flags: 0, sequence: 0, payload: writer.finish() };
  return { kind: 'answered', messages: [message], interrupted: false };
}

function refusal(name: 'ENOENT' | 'ENODEV'): NetlinkReply {
  return { kind: 'refused', errno: constants.errno[name], name };
}
