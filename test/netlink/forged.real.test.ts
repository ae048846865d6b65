/** Messages that another process sends to our sockets: they look like the kernel's, and only their sender is not. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inside } from '../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../system/support/namespace.ts';

const IMPORTS = `
  import { readFileSync } from 'node:fs';
  import { setTimeout as sleep } from 'node:timers/promises';
  import { faultCounts } from './src/faults.ts';
  import { AddressWatch } from './src/modes/addressWatch.ts';
  import { libc } from './src/system/libc.ts';
  import { addAddress, getAddresses } from './src/netlink/rtnetlink.ts';
  import { MessageWriter } from './src/netlink/codec.ts';
  import { getLink, decodeLink } from './src/netlink/rtnetlink.ts';
  import { NETLINK_ROUTE, NetlinkSocket } from './src/netlink/socket.ts';
  import { directChannel } from './test/netlink/support/directChannel.ts';
  import { NetlinkSockets } from './src/netlink/sockets.ts';
  const print = (value) => console.log(JSON.stringify(value));
  const until = async (isSo) => {
    for (let attempt = 0; !isSo(); attempt++) {
      if (attempt === 4000) throw new Error('it never came so');
      await sleep(5);
    }
  };
  const dropped = () => faultCounts().get('netlink_not_from_kernel');
  /** The port ids of all rtnetlink sockets of this namespace, but the kernel's and the forger's. */
  const targets = () => readFileSync('/proc/self/net/netlink', 'utf8').split('\\n').slice(1)
    .map((line) => line.trim().split(/\\s+/)).filter(([, protocol, id]) => protocol === '0' && id !== '0')
    .map(([, , id]) => Number(id));
  const forger = NetlinkSocket.open(NETLINK_ROUTE);
  const forge = (bytes, id) => {
    const to = new Uint8Array(12);
    new Uint16Array(to.buffer)[0] = 16;
    new Uint32Array(to.buffer)[1] = id;
    return libc().sendto(forger.descriptor, bytes, bytes.length, 0x40, to, to.length);
  };
  const NEWADDR = 20;
  const newAddress = (text) => new MessageWriter().message({ type: NEWADDR, flags: 0, sequence: 0 }, (writer) => {
    const ip = Uint8Array.from(text.split('.').map(Number));
    writer.raw(Uint8Array.of(2, 32, 0, 0, 1, 0, 0, 0)).attribute(1, ip).attribute(2, ip);
  }).finish().slice();
  const NOISE = Uint8Array.from({ length: 64 }, () => 255);
`;

describe('in a namespace', () => {
  let namespace: Namespace;
  beforeEach(async (context) => {
    requireNamespaces(context);
    namespace = await openNamespace();
  });
  afterEach(() => namespace.close());

  it('are no answers to a request, and do not prolong the wait for one', async () => {
    const answer = await inside(
      namespace,
      'forgedAnswer',
      `${IMPORTS}
       const own = targets();
       const channel = directChannel(NetlinkSocket.open(NETLINK_ROUTE));
       const [id] = targets().filter((each) => !own.includes(each));
       // An acknowledgement of each request to come.
       const sent = [1, 2, 3].map((sequence) => forge(new MessageWriter().message(
         { type: 2, flags: 0, sequence }, (writer) => writer.raw(new Uint8Array(20))).finish(), id));
       const reply = await channel.request(getLink('lo'));
       print({ sent, name: decodeLink(reply.messages[0].payload).name, dropped: dropped() });`,
    );
    expect(answer).toEqual({ sent: [36, 36, 36], name: 'lo', dropped: 3 });
  });

  it('are no notifications to the sockets, which go on hearing the kernel', async () => {
    const answer = await inside(
      namespace,
      'forgedNews',
      `${IMPORTS}
       const own = targets();
       const sockets = new NetlinkSockets();
       const watch = await AddressWatch.start(sockets);
       let told = 0;
       watch.subscribe({ onNodeAddresses: () => told++ });
       const ids = targets().filter((each) => !own.includes(each));
       for (const id of ids) for (const bytes of [newAddress('192.0.2.66'), NOISE, new Uint8Array(2), newAddress('192.0.2.67')])
         forge(bytes, id);
       await sockets.channel(NETLINK_ROUTE).apply([addAddress(1, '198.51.100.7')]);
       await sockets.channel(NETLINK_ROUTE).list(getAddresses(), 'the addresses', () => 1);
       await until(() => watch.nodeIps('IPv4').includes('198.51.100.7') && dropped() === ids.length * 4);
       await watch.close();
       await sockets.close();
       print({ sockets: ids.length, ips: watch.nodeIps('IPv4'), told, malformed: faultCounts().get('netlink_malformed') });`,
    );
    expect(answer).toEqual({ sockets: 3, ips: ['198.51.100.7'], told: 1, malformed: 0 });
  });
});
