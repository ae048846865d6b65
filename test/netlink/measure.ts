/**
 * What the thread costs, and what it spares: changes sent from the calling thread beside changes sent through the
 * worker. In the network namespace that it runs in; docs/decisions/0015-netlink-in-one-thread.md has the command.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { addAddress, deleteAddress, decodeLink, getLink, newLink } from '../../src/netlink/rtnetlink.ts';
import { type NetlinkChannel, directChannel } from '../../src/netlink/channel.ts';
import { NETLINK_ROUTE, NetlinkSocket } from '../../src/netlink/socket.ts';
import { NetlinkThread } from '../../src/netlink/thread.ts';
import type { Ip } from '../../src/model/ip.ts';

const ROUNDS = 5;
const SINGLE = 5000;
const IPS = Array.from({ length: 10_000 }, (_, index) => `10.1.${index >> 8}.${index & 255}` as Ip);

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;
}

/** How long the work took, and for how long at most nothing else could run meanwhile. */
async function timed(work: () => Promise<unknown>): Promise<readonly [took: number, held: number]> {
  let held = 0;
  let last = performance.now();
  const beat = setInterval(() => {
    held = Math.max(held, performance.now() - last - 1);
    last = performance.now();
  }, 1);
  const started = performance.now();
  await work();
  const took = performance.now() - started;
  await sleep(3);
  clearInterval(beat);
  return [took, held];
}

async function measure(name: string, channel: NetlinkChannel, linkIndex: number): Promise<void> {
  const many: (readonly [number, number])[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const added = IPS.map((ip) => addAddress(linkIndex, ip));
    many.push(await timed(() => channel.apply(added)));
    await channel.apply(IPS.map((ip) => deleteAddress(linkIndex, ip)));
  }
  const single: number[] = [];
  const change = [deleteAddress(linkIndex, '10.250.0.1' as Ip)];
  for (let round = 0; round < SINGLE; round++) {
    const started = performance.now();
    await channel.apply(change);
    single.push((performance.now() - started) * 1000);
  }
  const took = median(many.map(([time]) => time)).toFixed(0);
  const held = median(many.map(([, time]) => time)).toFixed(0);
  console.log(
    `${name}: ${IPS.length} changes ${took} ms, loop held for ${held} ms; one change ${median(single).toFixed(0)} µs`,
  );
}

const thread = await NetlinkThread.start();
const threaded = thread.channel(NETLINK_ROUTE);
await threaded.apply([newLink('vip0', 'bridge')]);
const reply = await threaded.request(getLink('vip0'));
const [message] = reply.kind === 'answered' ? reply.messages : [];
if (!message) throw new Error('no link vip0');
const { index } = decodeLink(message.payload);
const socket = NetlinkSocket.open(NETLINK_ROUTE);
await measure('direct', directChannel(socket), index);
await measure('thread', threaded, index);
socket.close();
await thread.close();
