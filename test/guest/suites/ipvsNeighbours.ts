/** What IPVS needs beside it: a device for its addresses, sets of them; and a connection through all of that. */
import { deepEqual, equal } from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { readServerConnections } from '../../../src/modes/ipvs/counters.ts';
import { directChannel } from '../../../src/netlink/channel.ts';
import { entryKey } from '../../../src/modes/ipvs/rules/sets.ts';
import {
  addAddress,
  deleteAddress,
  deleteLink,
  IFF_UP,
  type Link,
  newLink,
} from '../../../src/netlink/rtnetlink.ts';
import {
  listAddresses,
  probeSetType,
  readLink,
  readSet,
  flushIpvs,
  listDestinations,
} from '../../netlink/support/readers.ts';
import { addEntry, createSet } from '../../../src/netlink/ipset.ts';
import { newDestination, newService } from '../../../src/netlink/ipvs.ts';
import { NETLINK_NETFILTER, NetlinkSocket } from '../../../src/netlink/socket.ts';
import type { GuestSuite } from '../suite.ts';
import { apply, CLUSTER, failed, ip, ipvsKernel, ONE, PLAIN, run, SIX } from './ipvsKernel.ts';

const DEVICE = 'kube-ipvs0';

export const IPVS_NEIGHBOURS: GuestSuite = {
  name: 'what IPVS has beside it',
  tests: {
    'a dummy device that is down, whose addresses are local all the same': async () => {
      const { links } = ipvsKernel();
      deepEqual(apply([newLink(DEVICE, 'dummy'), newLink(DEVICE, 'dummy')], links), ['done', 'exists']);
      const { index, kind, flags } = device();
      equal(kind, 'dummy');
      equal(flags & IFF_UP, 0);
      const outcomes = apply(
        [
          addAddress(index, CLUSTER.ip),
          addAddress(index, SIX.ip),
          addAddress(index, CLUSTER.ip),
          deleteAddress(index, ip('10.96.0.9')),
        ],
        links,
      );
      deepEqual(outcomes, ['done', 'done', 'exists', 'absent']);
      const shown = run('ip', '-oneline', 'addr', 'show', 'dev', DEVICE).trimEnd().split('\n');
      const addresses = ['10.96.0.1/32', 'fd00::1/128'];
      deepEqual(
        shown.map((line) => line.split(/ +/)[3]),
        addresses,
      );
      deepEqual(
        listAddresses(links, { linkIndex: index }).map((address) => `${address.ip}/${address.prefix}`),
        addresses,
      );
      equal(run('ip', 'route', 'get', CLUSTER.ip).split(' ')[0], 'local');
      deepEqual(apply([deleteLink(DEVICE)], links), ['done']);
    },

    'a real connection, which it counts': async () => {
      const { socket, links, id } = ipvsKernel();
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

    'sets of addresses and ports': async () => {
      const netfilter = NetlinkSocket.open(NETLINK_NETFILTER);
      const spec = { type: 'hash:ip,port', family: 'IPv4', hashSize: 1024, maxElements: 65_536 } as const;
      const support = probeSetType(netfilter, spec.type, spec.family);
      const revision = support.state === 'present' ? support.revision : failed(support.reason);
      const name = 'KUBE-CLUSTER-IP';
      const entry = addEntry(name, { type: spec.type, ...CLUSTER });
      deepEqual(apply([createSet(name, spec, revision), entry], netfilter), ['done', 'done']);
      deepEqual(readSet(netfilter, name)?.entries.map(entryKey), ['10.96.0.1,tcp:443']);
      equal(run('ipset', 'list', name).split('Members:\n')[1]?.trim(), '10.96.0.1,tcp:443');
      run('ipset', 'destroy', name);
    },
  },
};

function device(): Link {
  return readLink(ipvsKernel().links, DEVICE) ?? failed(`no ${DEVICE}`);
}

/** Of the one real server. The kernel adds them up every two seconds. */
async function countedConnections(socket: NetlinkSocket, id: number): Promise<number | undefined> {
  const server = { ...CLUSTER, ...PLAIN, destinations: [], rank: 'address', servicePort: 'a/b:c' } as const;
  for (let tries = 0; tries < 60; tries++) {
    const [reading] = await readServerConnections(directChannel(socket), id, [['', server]], 'IPv4');
    if (reading && reading.connections > 0) return reading.connections;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  return undefined;
}
