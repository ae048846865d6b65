/** IPVS over netlink, beside what `ipvsadm` says of the same kernel. */
import { deepEqual, equal, ok } from 'node:assert/strict';
import {
  setTimeouts,
  deleteDestination,
  newDestination,
  setDestination,
  deleteService,
  type IpvsServiceKey,
  newService,
  setService,
} from '../../../src/netlink/ipvs.ts';
import {
  findFamily,
  flushIpvs,
  listServices,
  readInfo,
  readTimeouts,
  listDestinations,
} from '../../netlink/support/readers.ts';
import type { GuestSuite } from '../suite.ts';
import {
  apply,
  CLUSTER,
  DNS,
  ip,
  ipvsKernel,
  NOBODY,
  ONE,
  PLAIN,
  run,
  saved,
  SIX,
  threeServices,
  TWO,
} from './ipvsKernel.ts';

const IDLE = { forwarding: 'masquerade', activeConnections: 0, inactiveConnections: 0 };

export const IPVS_NETLINK: GuestSuite = {
  name: 'IPVS over netlink',
  tests: {
    'finds the family, and says which module one needs': async () => {
      const { socket, id } = ipvsKernel();
      deepEqual(findFamily(socket, 'NO_SUCH', 'no_such'), {
        state: 'absent',
        reason: 'the kernel has no NO_SUCH: load the module no_such',
      });
      deepEqual(readInfo(socket, id), { version: '1.2.1', connectionTableSize: 4096 });
    },

    'makes services and destinations, in one batch with refusals among them': async () => {
      const { id } = ipvsKernel();
      apply([flushIpvs(id)]);
      const changes = [
        ['done', newService(id, { ...CLUSTER, ...PLAIN })],
        ['exists', newService(id, { ...CLUSTER, ...PLAIN })],
        ['ENOENT', newService(id, { ...NOBODY, ...PLAIN, scheduler: 'nosuch' })],
        ['absent', setService(id, { ...NOBODY, ...PLAIN })],
        ['absent', deleteService(id, NOBODY)],
        ['done', newDestination(id, CLUSTER, ONE)],
        ['done', newDestination(id, CLUSTER, { ...TWO, weight: 1 })],
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
        '-A -t 10.96.0.1:443 -s rr',
        '-a -t 10.96.0.1:443 -r 10.1.0.1:6443 -m -w 1',
        '-a -t 10.96.0.1:443 -r 10.1.0.2:6443 -m -w 0',
      ]);
    },

    'of every protocol and both families': async () => {
      threeServices();
      deepEqual(saved(), [
        '-A --sctp-service [fd00::1]:9 -s rr',
        '-A -t 10.96.0.1:443 -s rr',
        '-A -u 10.96.0.10:53 -s rr -p 10800',
        '-a --sctp-service [fd00::1]:9 -r [fd00:1::1]:90 -m -w 1',
        '-a -t 10.96.0.1:443 -r 10.1.0.1:6443 -m -w 1',
        '-a -t 10.96.0.1:443 -r 10.1.0.2:6443 -m -w 0',
        '-a -u 10.96.0.10:53 -r 10.1.0.3:5353 -m -w 1',
      ]);
    },

    'reads back what it made, each service with the bit of the kernel': async () => {
      threeServices();
      const { socket, id } = ipvsKernel();
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
    },

    'changes and deletes them': async () => {
      threeServices();
      const { id } = ipvsKernel();
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

    'reads what others made, without services for firewall marks': async () => {
      run('ipvsadm', '--clear');
      run('ipvsadm', '-A', '-f', '7', '-s', 'rr');
      run(...'ipvsadm -A -t 192.0.2.1:80 -s mh -b mh-port -p 30 -M 255.255.255.0'.split(' '));
      run(...'ipvsadm -a -t 192.0.2.1:80 -r 192.0.2.2:80 -g -w 5'.split(' '));
      const { socket, id } = ipvsKernel();
      const key: IpvsServiceKey = { protocol: 'TCP', ip: ip('192.0.2.1'), port: 80 };
      deepEqual(listServices(socket, id), [
        { ...key, scheduler: 'mh', flags: 0x13, timeout: 30, clientPrefix: 24 },
      ]);
      deepEqual(listDestinations(socket, id, key), [
        { ...IDLE, ip: '192.0.2.2', port: 80, weight: 5, forwarding: 'route' },
      ]);
    },

    'sets time-outs, and leaves those that are 0': async () => {
      const { socket, id } = ipvsKernel();
      run('ipvsadm', '--set', '900', '120', '300');
      deepEqual(readTimeouts(socket, id), { tcp: 900, tcpFin: 120, udp: 300 });
      deepEqual(apply([setTimeouts(id, { tcp: 901, tcpFin: 0, udp: 301 })]), ['done']);
      deepEqual(readTimeouts(socket, id), { tcp: 901, tcpFin: 120, udp: 301 });
      equal(run('ipvsadm', '-L', '--timeout').trim(), 'Timeout (tcp tcpfin udp): 901 120 301');
    },

    flushes: async () => {
      threeServices();
      const { socket, id } = ipvsKernel();
      deepEqual(apply([flushIpvs(id)]), ['done']);
      deepEqual(listServices(socket, id), []);
      deepEqual(saved(), []);
    },

    'makes thousands at once': async () => {
      const { socket, id } = ipvsKernel();
      apply([flushIpvs(id)]);
      const services = Array.from(
        { length: 500 },
        (_, index): IpvsServiceKey => ({ ...CLUSTER, ip: ip(`10.2.${index >> 8}.${index & 255}`) }),
      );
      const destinations = Array.from({ length: 10 }, (_, index) => ({ ...ONE, ip: ip(`10.3.0.${index}`) }));
      const outcomes = apply(
        services.flatMap((service) => [
          newService(id, { ...service, ...PLAIN }),
          ...destinations.map((destination) => newDestination(id, service, destination)),
        ]),
      );
      ok(outcomes.every((outcome) => outcome === 'done'));
      equal(listServices(socket, id).length, 500);
      equal(services.flatMap((service) => listDestinations(socket, id, service)).length, 5000);
      apply([flushIpvs(id)]);
    },
  },
};

function byAddress<T extends { readonly ip: string }>(entries: readonly T[]): readonly T[] {
  return [...entries].sort((a, b) => (a.ip < b.ip ? -1 : 1));
}
