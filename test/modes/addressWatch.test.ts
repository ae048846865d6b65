import { describe, expect, test, vi } from 'vitest';
import { AddressWatch } from '../../src/modes/addressWatch.ts';
import type { Family, Ip } from '../../src/model/ip.ts';
import { ip } from '../plan/given.ts';
import { settle } from '../time/fakeClock.ts';
import { delAddress, delLink, FakeThread, newAddress, newLink } from '../system/support/fakeThread.ts';

const LOOPBACK = { link: 1, ip: '127.0.0.1', scope: 'host' } as const;
const NODE = { link: 2, ip: '192.0.2.10' };
const NODE_6 = { link: 2, ip: '2001:db8::10' };
const LINK_LOCAL_6 = { link: 2, ip: 'fe80::1', scope: 'link' } as const;
const DEVICE = { index: 7, name: 'kube-ipvs0' };
const SERVICE = { link: 7, ip: '10.96.0.1' };
const FOREIGN = { link: 7, ip: '203.0.113.9' };

interface World {
  readonly thread: FakeThread;
  readonly watch: AddressWatch;
  /** What the followers were told, in order. */
  readonly told: string[];
}

async function started(thread: FakeThread = usual()): Promise<World> {
  const watch = await AddressWatch.start(thread);
  const told: string[] = [];
  const bound: ReadonlySet<Ip> = new Set([ip(SERVICE.ip), ip('fd00:96::1')]);
  for (const family of ['IPv4', 'IPv6'] satisfies Family[]) {
    watch.subscribe({
      family,
      isBound: (address) => bound.has(address),
      onDevice: () => told.push(`${family} device`),
      onNodeAddresses: () => told.push(`${family} node`),
    });
  }
  return { thread, watch, told };
}

function usual(): FakeThread {
  const thread = new FakeThread();
  thread.device = DEVICE;
  thread.addresses = [LOOPBACK, NODE, NODE_6, LINK_LOCAL_6, SERVICE];
  return thread;
}

const BOTH_NODE = ['IPv4 node', 'IPv6 node'];
const BOTH_DEVICE = ['IPv4 device', 'IPv6 device'];

describe('the addresses of the node', () => {
  test('are those of every link but the device, without loopback and what is good on one link only', async () => {
    const { watch } = await started();
    expect(watch.nodeIps('IPv4')).toEqual(['192.0.2.10']);
    expect(watch.nodeIps('IPv6')).toEqual(['2001:db8::10']);
  });

  test('include IPv4 ones that are good on one link only', async () => {
    const { watch, thread } = await started();
    thread.tell(newAddress({ link: 2, ip: '169.254.1.1', scope: 'link' }));
    expect(watch.nodeIps('IPv4')).toContain('169.254.1.1');
  });

  test('an address on two links is one, and stays until it is on neither', async () => {
    const { watch, thread, told } = await started();
    thread.tell(newAddress({ link: 3, ip: NODE.ip }));
    expect(watch.nodeIps('IPv4')).toEqual(['192.0.2.10']);
    thread.tell(delAddress(NODE));
    expect(watch.nodeIps('IPv4')).toEqual(['192.0.2.10']);
    told.length = 0;
    thread.tell(delAddress({ link: 3, ip: NODE.ip }));
    expect(watch.nodeIps('IPv4')).toEqual([]);
    expect(told).toEqual(BOTH_NODE);
  });

  test('an address that is on the device and on another link is the node’s', async () => {
    const { watch, thread } = await started();
    thread.tell(newAddress({ link: 2, ip: SERVICE.ip }));
    expect(watch.nodeIps('IPv4')).toEqual(['192.0.2.10', SERVICE.ip]);
  });

  test('one comes, one goes: everybody is told once per datagram', async () => {
    const { watch, thread, told } = await started();
    thread.tell(newAddress({ link: 3, ip: '198.51.100.1' }), newAddress({ link: 3, ip: '198.51.100.2' }));
    expect(watch.nodeIps('IPv4')).toEqual(['192.0.2.10', '198.51.100.1', '198.51.100.2']);
    thread.tell(delAddress(NODE));
    expect(watch.nodeIps('IPv4')).toEqual(['198.51.100.1', '198.51.100.2']);
    expect(told).toEqual([...BOTH_NODE, ...BOTH_NODE]);
  });

  test.each([
    ['one that is known already', newAddress(NODE)],
    ['one that was not there', delAddress({ link: 2, ip: '198.51.100.9' })],
    ['a loopback address', newAddress({ link: 1, ip: '127.0.0.2', scope: 'host' })],
    ['an IPv6 address of one link', newAddress({ link: 3, ip: 'fe80::2', scope: 'link' })],
  ])('nobody is told of %s', async (_, message) => {
    const { thread, told } = await started();
    thread.tell(message);
    expect(told).toEqual([]);
  });
});

describe('the device', () => {
  test('what we bind and unbind is no news', async () => {
    const { thread, told, watch } = await started();
    thread.tell(newAddress(SERVICE), newAddress({ link: 7, ip: 'fd00:96::1' }));
    thread.tell(delAddress(FOREIGN)); // wanted no longer
    expect(told).toEqual([]);
    expect(watch.nodeIps('IPv4')).toEqual(['192.0.2.10']);
  });

  test('an address that nobody of us wants, or that we want and is gone: its family looks', async () => {
    const { thread, told } = await started();
    thread.tell(newAddress(FOREIGN));
    expect(told).toEqual(['IPv4 device']);
    thread.tell(delAddress({ link: 7, ip: 'fd00:96::1' }));
    expect(told).toEqual(['IPv4 device', 'IPv6 device']);
  });

  test('the address that IPv6 gives to every link is not looked at', async () => {
    const { thread, told } = await started();
    thread.tell(newAddress({ link: 7, ip: 'fe80::7', scope: 'link' }));
    expect(told).toEqual([]);
  });

  test('deleted: both families look', async () => {
    const { thread, told } = await started();
    thread.tell(delLink(DEVICE));
    expect(told).toEqual(BOTH_DEVICE);
  });

  test('set up or down: both families look, because local routes go with it', async () => {
    const { thread, told } = await started();
    thread.tell(newLink({ ...DEVICE, isUp: true }));
    expect(told).toEqual(BOTH_DEVICE);
    told.length = 0;
    thread.tell(newLink({ ...DEVICE, isUp: true }));
    expect(told).toEqual([]);
    thread.tell(newLink(DEVICE));
    expect(told).toEqual(BOTH_DEVICE);
  });

  test('made anew by us, with another number: no news, and its addresses are not the node’s', async () => {
    const { thread, told, watch } = await started();
    thread.tell(delLink(DEVICE));
    told.length = 0;
    thread.tell(newLink({ ...DEVICE, index: 8 }), newAddress({ link: 8, ip: SERVICE.ip }));
    expect(told).toEqual([]);
    expect(watch.nodeIps('IPv4')).toEqual(['192.0.2.10']);
    thread.tell(newAddress({ link: 8, ip: FOREIGN.ip }));
    expect(told).toEqual(['IPv4 device']);
  });

  test('absent at the start, made by us later', async () => {
    const thread = usual();
    thread.device = undefined;
    thread.addresses = [NODE];
    const { told, watch } = await started(thread);
    thread.tell(newLink(DEVICE), newAddress(SERVICE));
    expect(told).toEqual([]);
    expect(watch.nodeIps('IPv4')).toEqual(['192.0.2.10']);
  });

  test.each([newLink({ index: 3, name: 'eth1', isUp: true }), delLink({ index: 3, name: 'eth1' })])(
    'other links are no matter',
    async (message) => {
      const { thread, told } = await started();
      thread.tell(message);
      expect(told).toEqual([]);
    },
  );
});

describe('messages that are lost', () => {
  test('everything is read again, and everybody looks', async () => {
    const { thread, told, watch } = await started();
    thread.addresses = [{ link: 2, ip: '192.0.2.77' }];
    thread.device = undefined;
    thread.lose();
    await settle();
    expect(watch.nodeIps('IPv4')).toEqual(['192.0.2.77']);
    expect([...told].sort()).toEqual([...BOTH_DEVICE, ...BOTH_NODE].sort());
  });

  test('news during a reading: it is read again, so that the older reading does not win', async () => {
    const { thread, watch } = await started();
    thread.readings = 0;
    thread.duringReading = () => {
      thread.duringReading = () => {};
      thread.addresses = [...thread.addresses, { link: 3, ip: '198.51.100.1' }];
      thread.tell(newAddress({ link: 3, ip: '198.51.100.1' }));
    };
    thread.lose();
    await settle();
    expect(thread.readings).toBe(2);
    expect(watch.nodeIps('IPv4')).toEqual(['192.0.2.10', '198.51.100.1']);
  });

  test('news that never ends ends the reading all the same', async () => {
    const thread = usual();
    thread.duringReading = () => thread.tell(newLink({ index: 3, name: 'eth1' }));
    const { watch } = await started(thread);
    expect(thread.readings).toBe(10);
    expect(watch.nodeIps('IPv4')).toEqual(['192.0.2.10']);
  });
});

describe('a reading that the kernel refuses', () => {
  test('at the start is fatal: a node without addresses would have no node ports', async () => {
    const thread = usual();
    thread.isRefusing = true;
    await expect(AddressWatch.start(thread)).rejects.toThrow('cannot list the addresses: ENOBUFS');
  });

  test('later leaves what is known, and everybody looks', async () => {
    const { thread, watch, told } = await started();
    thread.isRefusing = true;
    thread.lose();
    await settle();
    expect(watch.nodeIps('IPv4')).toEqual(['192.0.2.10']);
    expect([...told].sort()).toEqual([...BOTH_DEVICE, ...BOTH_NODE].sort());
  });
});

test('a reading that failed is repeated, so that no address is missed for good', async () => {
  const { thread, watch } = await started();
  thread.isRefusing = true;
  thread.addresses = [{ link: 2, ip: '192.0.2.77' }];
  thread.lose();
  await settle();
  thread.isRefusing = false;
  await vi.waitFor(() => expect(watch.nodeIps('IPv4')).toEqual(['192.0.2.77']), { timeout: 150_000 });
  await watch.close();
});

test('losses while a reading waits for its turn are one reading', async () => {
  const { thread } = await started();
  thread.readings = 0;
  for (let round = 0; round < 50; round++) thread.lose();
  await settle();
  expect(thread.readings).toBe(1);
});

test('who follows the node’s addresses alone hears nothing of the device', async () => {
  const thread = usual();
  const watch = await AddressWatch.start(thread);
  let count = 0;
  watch.subscribe({ onNodeAddresses: () => count++ });
  thread.tell(newLink({ ...DEVICE, isUp: true }), newAddress(FOREIGN), delAddress(SERVICE), delLink(DEVICE));
  expect(count).toBe(0);
  thread.tell(delAddress(NODE));
  expect(count).toBe(1);
});

test('closing ends the watch', async () => {
  const { thread, watch } = await started();
  await watch.close();
  expect(thread.isClosed).toBe(true);
});
