/** IPVS, and the device that it needs beside it, over netlink: beside what `ipvsadm` and `ip` say of the same kernel. */
import { deepEqual, equal } from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { type Ip, parseIp } from '../../../src/model/ip.ts';
import type { Change } from '../../../src/netlink/request.ts';
import { directChannel } from '../../netlink/support/directChannel.ts';
import {
  decodeDestinationCounters,
  deleteDestination,
  deleteService,
  getDestinations,
  type IpvsServiceKey,
  newDestination,
  newService,
  setDestination,
  setService,
  setTimeouts,
} from '../../../src/netlink/ipvs.ts';
import {
  addAddress,
  deleteAddress,
  deleteLink,
  IFF_UP,
  type Link,
  newLink,
} from '../../../src/netlink/rtnetlink.ts';
import { NETLINK_GENERIC, NETLINK_ROUTE } from '../../../src/netlink/socket.ts';
import { SyncSocket } from '../../netlink/support/syncSocket.ts';
import {
  applyChanges,
  findIpvsFamily,
  flushIpvs,
  listDestinations,
  listServices,
  readLink,
  readTimeouts,
} from '../../netlink/support/readers.ts';
import type { GuestSuite } from '../suite.ts';

const DEVICE = 'kube-ipvs0';
const CLUSTER: IpvsServiceKey = { protocol: 'TCP', ip: ip('10.96.0.1'), port: 443 };
const DNS: IpvsServiceKey = { protocol: 'UDP', ip: ip('10.96.0.10'), port: 53 };
const SIX: IpvsServiceKey = { protocol: 'SCTP', ip: ip('fd00::1'), port: 9 };
const NOBODY: IpvsServiceKey = { ...CLUSTER, port: 445 };
const PLAIN = { scheduler: 'rr', flags: 0, timeout: 0, clientPrefix: 32 };
const ONE = { ip: ip('10.1.0.1'), port: 6443, weight: 1 };
const TWO = { ip: ip('10.1.0.2'), port: 6443, weight: 0 };
const IDLE = { activeConnections: 0, inactiveConnections: 0 };

export const IPVS_NETLINK: GuestSuite = {
  name: 'IPVS over netlink',
  tests: {
    'services and destinations of every protocol, in one batch with refusals among them': async () => {
      const { socket, id } = kernel();
      const changes = [
        ['done', flushIpvs(id)],
        ['done', newService(id, { ...CLUSTER, ...PLAIN })],
        ['done', newService(id, { ...DNS, ...PLAIN, flags: 1, timeout: 10_800 })],
        ['done', newService(id, { ...SIX, ...PLAIN, clientPrefix: 128 })],
        ['exists', newService(id, { ...CLUSTER, ...PLAIN })],
        ['ENOENT', newService(id, { ...NOBODY, ...PLAIN, scheduler: 'nosuch' })],
        ['absent', setService(id, { ...NOBODY, ...PLAIN })],
        ['absent', deleteService(id, NOBODY)],
        ['done', newDestination(id, CLUSTER, ONE)],
        ['done', newDestination(id, CLUSTER, { ...TWO, weight: 1 })],
        ['done', newDestination(id, DNS, { ip: ip('10.1.0.3'), port: 5353, weight: 1 })],
        ['done', newDestination(id, SIX, { ip: ip('fd00:1::1'), port: 90, weight: 1 })],
        ['exists', newDestination(id, CLUSTER, TWO)],
        ['absent', newDestination(id, NOBODY, ONE)],
        ['done', setDestination(id, CLUSTER, TWO)],
        ['absent', setDestination(id, CLUSTER, { ...TWO, port: 1 })],
        ['absent', deleteDestination(id, CLUSTER, { ...TWO, port: 1 })],
      ] as const;
      deepEqual(
        apply(changes.map(([, change]) => change)),
        changes.map(([outcome]) => outcome),
      );
      deepEqual(saved(), [
        '-A --sctp-service [fd00::1]:9 -s rr',
        '-A -t 10.96.0.1:443 -s rr',
        '-A -u 10.96.0.10:53 -s rr -p 10800',
        '-a --sctp-service [fd00::1]:9 -r [fd00:1::1]:90 -m -w 1',
        '-a -t 10.96.0.1:443 -r 10.1.0.1:6443 -m -w 1',
        '-a -t 10.96.0.1:443 -r 10.1.0.2:6443 -m -w 0',
        '-a -u 10.96.0.10:53 -r 10.1.0.3:5353 -m -w 1',
      ]);
      // Each service with the bit of the kernel.
      deepEqual(byAddress(listServices(socket, id)), [
        { ...CLUSTER, ...PLAIN, flags: 2 },
        { ...DNS, ...PLAIN, flags: 3, timeout: 10_800 },
        { ...SIX, ...PLAIN, flags: 2, clientPrefix: 128 },
      ]);
      deepEqual(byAddress(listDestinations(socket, id, CLUSTER)), [
        { ...ONE, ...IDLE },
        { ...TWO, ...IDLE },
      ]);
      deepEqual(listDestinations(socket, id, SIX), [{ ip: 'fd00:1::1', port: 90, weight: 1, ...IDLE }]);
      deepEqual(listDestinations(socket, id, NOBODY), []);
      const outcomes = apply([
        setService(id, { ...CLUSTER, ...PLAIN, scheduler: 'wrr', flags: 1, timeout: 60 }),
        setService(id, { ...DNS, ...PLAIN }),
        deleteDestination(id, CLUSTER, ONE),
        deleteService(id, SIX),
      ]);
      deepEqual(outcomes, ['done', 'done', 'done', 'done']);
      deepEqual(saved(), [
        '-A -t 10.96.0.1:443 -s wrr -p 60',
        '-A -u 10.96.0.10:53 -s rr',
        '-a -t 10.96.0.1:443 -r 10.1.0.2:6443 -m -w 0',
        '-a -u 10.96.0.10:53 -r 10.1.0.3:5353 -m -w 1',
      ]);
    },

    'what others made, without services for firewall marks': async () => {
      run('ipvsadm', '--clear');
      run('ipvsadm', '-A', '-f', '7', '-s', 'rr');
      run(...'ipvsadm -A -t 192.0.2.1:80 -s mh -b mh-port -p 30 -M 255.255.255.0'.split(' '));
      run(...'ipvsadm -a -t 192.0.2.1:80 -r 192.0.2.2:80 -g -w 5'.split(' '));
      const { socket, id } = kernel();
      const key: IpvsServiceKey = { protocol: 'TCP', ip: ip('192.0.2.1'), port: 80 };
      deepEqual(listServices(socket, id), [
        { ...key, scheduler: 'mh', flags: 0x13, timeout: 30, clientPrefix: 24 },
      ]);
      deepEqual(listDestinations(socket, id, key), [{ ...IDLE, ip: '192.0.2.2', port: 80, weight: 5 }]);
    },

    'time-outs; those that are 0 stay': async () => {
      const { socket, id } = kernel();
      run('ipvsadm', '--set', '900', '120', '300');
      deepEqual(apply([setTimeouts(id, { tcp: 901, tcpFin: 0, udp: 301 })]), ['done']);
      deepEqual(readTimeouts(socket, id), { tcp: 901, tcpFin: 120, udp: 301 });
      equal(run('ipvsadm', '-L', '--timeout').trim(), 'Timeout (tcp tcpfin udp): 901 120 301');
    },

    'a dummy device that is down, whose addresses are local all the same': async () => {
      const { links } = kernel();
      deepEqual(apply([newLink(DEVICE, 'dummy'), newLink(DEVICE, 'dummy')], links), ['done', 'exists']);
      const { index, kind, flags } = device();
      deepEqual([kind, flags & IFF_UP], ['dummy', 0]);
      const changes = [
        addAddress(index, CLUSTER.ip),
        addAddress(index, CLUSTER.ip),
        deleteAddress(index, ip('10.96.0.9')),
      ];
      deepEqual(apply(changes, links), ['done', 'exists', 'absent']);
      equal(run('ip', 'route', 'get', CLUSTER.ip).split(' ')[0], 'local');
      deepEqual(apply([deleteLink(DEVICE)], links), ['done']);
    },

    'a real connection, which is counted': async () => {
      const { socket, links, id } = kernel();
      apply([newLink(DEVICE, 'dummy')], links);
      const { index } = device();
      apply([addAddress(index, CLUSTER.ip), addAddress(index, ONE.ip)], links);
      apply([flushIpvs(id), newService(id, { ...CLUSTER, ...PLAIN }), newDestination(id, CLUSTER, ONE)]);
      const server = createServer((peer) => void peer.end('hello')).listen(ONE.port, ONE.ip);
      await once(server, 'listening');
      const client = connect({ host: CLUSTER.ip, port: CLUSTER.port, allowHalfOpen: true });
      equal(String((await once(client, 'data'))[0]), 'hello');
      const counts = listDestinations(socket, id, CLUSTER).map((each) => [
        each.activeConnections,
        each.inactiveConnections,
      ]);
      const theirs = run('ipvsadm', '-Ln').trimEnd().split('\n').at(-1)?.trim().split(/ +/).slice(-2);
      const counted = await countedConnections(socket, id);
      client.destroy();
      server.close();
      apply([flushIpvs(id)]);
      apply([deleteLink(DEVICE)], links);
      deepEqual(counts, [theirs?.map(Number)]);
      equal(counted, 1);
      equal(
        counts.flat().reduce((sum, count) => sum + count),
        1,
      );
    },
  },
};

interface Kernel {
  readonly socket: SyncSocket;
  readonly links: SyncSocket;
  /** Of the generic-netlink family. */
  readonly id: number;
}

let opened: Kernel | undefined;

/** On first use: the host reads this file too, and has none. */
function kernel(): Kernel {
  if (opened) return opened;
  const socket = SyncSocket.open(NETLINK_GENERIC);
  const lookup = findIpvsFamily(socket);
  if (lookup.state !== 'present') throw new Error(lookup.reason);
  return (opened = { socket, links: SyncSocket.open(NETLINK_ROUTE), id: lookup.id });
}

/** `done`, `exists`, `absent`, or the name of the error. */
function apply(changes: readonly Change[], socket: SyncSocket = kernel().socket): readonly string[] {
  return applyChanges(socket, changes).map((each) => (each.state === 'refused' ? each.name : each.state));
}

/** What `ipvsadm` would restore, sorted. */
function saved(): readonly string[] {
  const lines = run('ipvsadm', '--save', '--numeric').split('\n');
  return lines.flatMap((line) => line.trim() || []).sort();
}

function run(...argv: readonly string[]): string {
  const [program = '', ...words] = argv;
  const { stdout, stderr, status } = spawnSync(program, words, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${argv.join(' ')}: ${stderr}`);
  return stdout;
}

function ip(text: string): Ip {
  const parsed = parseIp(text);
  if (parsed === undefined) throw new Error(`${text} is no address`);
  return parsed;
}

function device(): Link {
  const link = readLink(kernel().links, DEVICE);
  if (!link) throw new Error(`no ${DEVICE}`);
  return link;
}

/** Of the one real server. The kernel adds them up every two seconds. */
async function countedConnections(socket: SyncSocket, id: number): Promise<number | undefined> {
  const channel = directChannel(socket.socket, socket.sequence);
  for (let tries = 0; tries < 60; tries++) {
    const request = getDestinations(id, CLUSTER);
    const [counted] = await channel.list(request, 'the real servers', decodeDestinationCounters);
    const { connections = 0 } = counted ?? {};
    if (connections > 0) return connections;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  return undefined;
}

function byAddress<T extends { readonly ip: string }>(entries: readonly T[]): readonly T[] {
  return [...entries].sort((a, b) => (a.ip < b.ip ? -1 : 1));
}
