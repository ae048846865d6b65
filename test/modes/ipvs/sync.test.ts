/** While what is in the kernel is verified, changes go first; and what other programs changed is named and repaired. */
import { expect, test } from 'vitest';
import type { IpvsClient, IpvsEdit } from '../../../src/modes/ipvs/rules/client.ts';
import type { SyncReport } from '../../../src/proxy/report.ts';
import { ipvsMode, openIptables } from '../../contract/modes.ts';
import { World } from '../../contract/world.ts';
import { ip } from '../../plan/given.ts';
import { FakeIptables } from '../../scenarios/fakeIptables.ts';
import { FakeIpvsKernel } from './rules/fakeKernel.ts';

/** Each has several virtual servers: for its cluster IP, and for its node port at each of node1's addresses. */
const SERVICES = 100;

/** A settled node whose calls of the kernel are written down. */
async function settled(read: Partial<IpvsClient> = {}) {
  const world = new World('IPv4', { localhostNodePorts: false });
  const iptables = new FakeIptables();
  const kernel = new FakeIpvsKernel('IPv4', iptables);
  const calls: string[] = [];
  const noted = <Args extends readonly unknown[], Result>(name: string, call: (...args: Args) => Result) => {
    return (...args: Args): Result => {
      calls.push(name);
      return call(...args);
    };
  };
  const client: IpvsClient = {
    readSet: noted('read a set', (name) => kernel.readSet(name)),
    readDevice: noted('read the device', () => kernel.readDevice()),
    readServers: noted('read the servers', () => kernel.readServers()),
    readDestinations: noted('read destinations', (servers) => kernel.readDestinations(servers)),
    apply: (edits: readonly IpvsEdit[]) => {
      calls.push(`write ${edits.length}`);
      return kernel.apply(edits);
    },
    ...read,
  };
  const sync = ipvsMode(
    { client, iptables: await openIptables('IPv4', iptables.runner) },
    () => world.nodeIps,
  );
  const write = async (isChangeWaiting?: () => boolean): Promise<SyncReport> => {
    calls.length = 0;
    const report = await sync.sync(world.plan, world.unwritten, isChangeWaiting);
    world.written();
    return report;
  };
  world.tell([`${SERVICES} services`, 'a/web 10.96.1.1 80', 'a/web-1 of web 8080 | pod-a']);
  await write();
  return { world, kernel, calls, sync, write };
}

test('a change is written between two parts, and what is left is read then', async () => {
  const { world, calls, sync, write } = await settled();
  sync.requestFull();
  expect(await write()).toMatchObject({ kind: 'full', commits: 0, repaired: [] });
  const all = [...calls];
  expect(all.length).toBeGreaterThan(25);
  for (let parts = 1; parts < all.length; parts++) {
    sync.requestFull();
    const first = await write(() => calls.length >= parts);
    expect(first).toMatchObject({ kind: 'nothing', isUnfinished: true });
    expect(calls).toEqual(all.slice(0, parts));
    world.tell([`a/web 10.96.1.1 80 affinity=${parts}`]);
    const second = await write();
    expect(second).toMatchObject({ kind: 'full', repaired: [] });
    expect(second).not.toHaveProperty('isUnfinished');
    expect(calls[0]).toBe('write 1');
    expect(calls.slice(1)).toEqual(all.slice(parts));
  }
});

test('connections are counted by the service port of their virtual server', async () => {
  const endpoint = { ip: ip('10.244.1.11'), port: 8080, key: '10.244.1.11:8080' };
  const state = { ...endpoint, weight: 1, activeConnections: 2, inactiveConnections: 3 };
  const { world, sync } = await settled({
    readDestinations: async ([server]) =>
      server?.ip === '10.96.1.1' ? [[{ ...state, connections: 7 }]] : [[state]],
  });
  const reading = sync.readConnections();
  world.tell(['a/web gone']);
  expect(await reading).toEqual([
    {
      family: 'IPv4',
      servicePort: 'a/web',
      protocol: 'TCP',
      endpoint: endpoint.key,
      element: `TCP 10.96.1.1:80 -> ${endpoint.key}`,
      connections: 7,
      isCountedElsewhere: false,
    },
  ]);
});

test('what another program changed is repaired with the part that it is in, also behind a change', async () => {
  const { world, kernel, sync, write } = await settled();
  const [entry] = kernel.sets.get('KUBE-CLUSTER-IP')?.entries.keys() ?? [];
  const [lost = ''] = kernel.servers.keys();
  kernel.device?.addresses.delete(ip('10.97.0.0'));
  kernel.sets.get('KUBE-CLUSTER-IP')?.entries.delete(entry ?? '');
  kernel.servers.delete(lost);
  kernel.servers.get('TCP 10.96.1.1:80')?.destinations.clear();
  let asked = 0;
  sync.requestFull();
  const first = await write(() => ++asked === 2);
  expect(first).toMatchObject({ isUnfinished: true, repaired: ['address 10.97.0.0 on kube-ipvs0'] });
  world.tell(['a/web 10.96.1.1 80 affinity=60']);
  expect((await write()).repaired.toSorted()).toEqual(
    ['set KUBE-CLUSTER-IP', `virtual server ${lost}`, 'virtual server TCP 10.96.1.1:80'].toSorted(),
  );
  sync.requestFull();
  expect(await write()).toMatchObject({ kind: 'full', commits: 0, repaired: [] });
});

test('a set that is full is made again in twice the size, and what it refused is served', async () => {
  const { world, kernel, write } = await settled();
  const name = 'KUBE-CLUSTER-IP';
  const set = kernel.sets.get(name);
  if (set) set.capacity = set.entries.size;
  world.tell(['a/new 10.96.1.7 80']);
  const refused = await write();
  expect([...refused.refused.values()].map(({ message }) => message)).toEqual([
    `create entry 10.96.1.7,tcp:80 of set ${name}: IPSET_ERR_HASH_FULL`,
  ]);
  world.tell(['a/new 10.96.1.7 80 affinity=60']);
  expect((await write()).refused.size).toBe(0);
  expect(kernel.sets.get(name)?.entries.has('10.96.1.7,tcp:80')).toBe(true);
  expect(kernel.sets.get(name)?.capacity).toBe(2 * (set?.capacity ?? 0));
  expect(kernel.sets.has('KUBE-GROWING')).toBe(false);
});
