/**
 * What ipvs.real.test.ts runs in a kernel that has IPVS: every step changes the kernel through our code and notes what
 * that says beside what `ipvsadm`, `ip` and `ipset` say. Prints all of it as JSON.
 */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { addAddress, deleteAddress, listAddresses } from '../../../src/kernel/netlink/address.ts';
import { type ChangeOutcome, applyChange, applyChanges } from '../../../src/kernel/netlink/batch.ts';
import { findFamily } from '../../../src/kernel/netlink/genetlink.ts';
import { addEntry, createSet } from '../../../src/kernel/netlink/ipset.ts';
import { entryText } from '../../../src/kernel/netlink/ipsetEntry.ts';
import { readSet } from '../../../src/kernel/netlink/ipsetList.ts';
import { probeSetType } from '../../../src/kernel/netlink/ipsetType.ts';
import { findIpvs } from '../../../src/kernel/netlink/ipvs.ts';
import { flushIpvs, readInfo, readTimeouts, setTimeouts } from '../../../src/kernel/netlink/ipvsConfig.ts';
import {
  deleteDestination,
  listDestinations,
  newDestination,
  setDestination,
} from '../../../src/kernel/netlink/ipvsDestination.ts';
import {
  type IpvsServiceKey,
  deleteService,
  listServices,
  newService,
  setService,
} from '../../../src/kernel/netlink/ipvsService.ts';
import { IFF_UP, deleteLink, newLink, readLink } from '../../../src/kernel/netlink/link.ts';
import {
  NETLINK_GENERIC,
  NETLINK_NETFILTER,
  NETLINK_ROUTE,
  NetlinkSocket,
} from '../../../src/kernel/netlink/socket.ts';
import { type Ip, parseIp } from '../../../src/model/ip.ts';

const ip = (text: string): Ip => parseIp(text) ?? failed(`${text} is no address`);
const brief = (outcome: ChangeOutcome): string =>
  outcome.state === 'refused' ? outcome.name : outcome.state;

const socket = NetlinkSocket.open(NETLINK_GENERIC);
const links = NetlinkSocket.open(NETLINK_ROUTE);
const lookup = findIpvs(socket);
const ipvs = lookup.state === 'present' ? lookup.id : failed(lookup.reason);

const cluster: IpvsServiceKey = { protocol: 'TCP', ip: ip('10.96.0.1'), port: 443 };
const dns: IpvsServiceKey = { protocol: 'UDP', ip: ip('10.96.0.10'), port: 53 };
const six: IpvsServiceKey = { protocol: 'SCTP', ip: ip('fd00::1'), port: 9 };
const absent: IpvsServiceKey = { ...cluster, port: 445 };
const plain = { scheduler: 'rr', flags: 0, timeout: 0, clientPrefix: 32 };
const one = { ip: ip('10.1.0.1'), port: 6443, weight: 1 };
const two = { ip: ip('10.1.0.2'), port: 6443, weight: 1 };

console.log(
  JSON.stringify({
    unknownFamily: findFamily(socket, 'NO_SUCH', 'no_such'),
    info: readInfo(socket, ipvs),
    ...createAndChange(),
    ofOthers: readWhatOthersMade(),
    timeouts: timeouts(),
    flushed: [brief(applyChange(socket, flushIpvs(ipvs))), listServices(socket, ipvs), saved()],
    device: device(),
    connections: await connections(),
    sets: sets(),
    many: many(),
  }),
);

function createAndChange(): object {
  const created = applyChanges(socket, [
    newService(ipvs, { ...cluster, ...plain }),
    newService(ipvs, { ...dns, ...plain, flags: 1, timeout: 10_800 }),
    newService(ipvs, { ...six, ...plain, clientPrefix: 128 }),
    newService(ipvs, { ...cluster, ...plain }),
    newService(ipvs, { ...absent, ...plain, scheduler: 'nosuch' }),
    setService(ipvs, { ...absent, ...plain }),
    deleteService(ipvs, absent),
    newDestination(ipvs, cluster, one),
    newDestination(ipvs, cluster, two),
    newDestination(ipvs, cluster, two),
    newDestination(ipvs, absent, one),
    newDestination(ipvs, dns, { ip: ip('10.1.0.3'), port: 5353, weight: 1 }),
    newDestination(ipvs, six, { ip: ip('fd00:1::1'), port: 90, weight: 1 }),
    setDestination(ipvs, cluster, { ...two, weight: 0 }),
    setDestination(ipvs, cluster, { ...two, port: 1 }),
    deleteDestination(ipvs, cluster, { ...two, port: 1 }),
  ]).map(brief);
  const seen = { listing: run('ipvsadm', '-Ln'), saved: saved(), services: listServices(socket, ipvs) };
  const destinations = [cluster, six, absent].map((key) => listDestinations(socket, ipvs, key));
  const changed = applyChanges(socket, [
    setService(ipvs, { ...cluster, ...plain, scheduler: 'wrr', flags: 1, timeout: 60 }),
    setService(ipvs, { ...dns, ...plain }),
    deleteDestination(ipvs, cluster, one),
    deleteService(ipvs, six),
  ]).map(brief);
  return { created, ...seen, destinations, changed, savedAfterChange: saved() };
}

function readWhatOthersMade(): unknown {
  run('ipvsadm', '--clear');
  run('ipvsadm', '-A', '-f', '7', '-s', 'rr');
  run(...'ipvsadm -A -t 192.0.2.1:80 -s mh -b mh-port -p 30 -M 255.255.255.0'.split(' '));
  run(...'ipvsadm -a -t 192.0.2.1:80 -r 192.0.2.2:80 -g -w 5'.split(' '));
  const key: IpvsServiceKey = { protocol: 'TCP', ip: ip('192.0.2.1'), port: 80 };
  return [listServices(socket, ipvs), listDestinations(socket, ipvs, key)];
}

function timeouts(): unknown {
  const before = readTimeouts(socket, ipvs);
  const outcome = brief(applyChange(socket, setTimeouts(ipvs, { tcp: 901, tcpFin: 0, udp: 301 })));
  return [before, outcome, readTimeouts(socket, ipvs), run('ipvsadm', '-L', '--timeout').trim()];
}

function device(): object {
  const made = [1, 2].map(() => brief(applyChange(links, newLink('kube-ipvs0', 'dummy'))));
  const link = readLink(links, 'kube-ipvs0') ?? failed('no kube-ipvs0');
  const { index } = link;
  const bound = applyChanges(links, [
    addAddress(index, cluster.ip),
    addAddress(index, six.ip),
    addAddress(index, cluster.ip),
    deleteAddress(index, ip('10.96.0.9')),
  ]).map(brief);
  const shown = run('ip', '-oneline', 'addr', 'show', 'dev', 'kube-ipvs0').trimEnd().split('\n');
  return {
    made,
    kind: link.kind,
    isUp: (link.flags & IFF_UP) !== 0,
    bound,
    shown: shown.map((line) => line.split(/ +/)[3]),
    listed: listAddresses(links, { linkIndex: index }).map((address) => `${address.ip}/${address.prefix}`),
    route: run('ip', 'route', 'get', cluster.ip).split(' ')[0],
  };
}

/** A real connection, through the service to a server on this machine. */
async function connections(): Promise<object> {
  const { index } = readLink(links, 'kube-ipvs0') ?? failed('no kube-ipvs0');
  applyChange(links, addAddress(index, one.ip));
  const server = createServer((peer) => void peer.end('hello')).listen(one.port, one.ip);
  await once(server, 'listening');
  applyChanges(socket, [newService(ipvs, { ...cluster, ...plain }), newDestination(ipvs, cluster, one)]);
  const client = connect({ host: cluster.ip, port: cluster.port, allowHalfOpen: true });
  const heard = String((await once(client, 'data'))[0]);
  const counts = (): unknown =>
    listDestinations(socket, ipvs, cluster).map(({ activeConnections, inactiveConnections }) => [
      activeConnections,
      inactiveConnections,
    ]);
  const total = counts();
  const line = run('ipvsadm', '-Ln').trimEnd().split('\n').at(-1)?.trim().split(/ +/).slice(-2).map(Number);
  client.destroy();
  server.close();
  applyChange(socket, flushIpvs(ipvs));
  return {
    heard,
    counts: total,
    theirCounts: line,
    gone: brief(applyChange(links, deleteLink('kube-ipvs0'))),
  };
}

function sets(): unknown {
  const netfilter = NetlinkSocket.open(NETLINK_NETFILTER);
  const spec = { type: 'hash:ip,port', family: 'IPv4', hashSize: 1024, maxElements: 65_536 } as const;
  const support = probeSetType(netfilter, spec.type, spec.family);
  const revision = support.state === 'present' ? support.revision : failed(support.reason);
  const name = 'KUBE-CLUSTER-IP';
  const outcomes = applyChanges(netfilter, [
    createSet(name, spec, revision),
    addEntry(name, { type: spec.type, ...cluster }),
  ]).map(brief);
  const entries = readSet(netfilter, name)?.entries.map(entryText);
  return [outcomes, entries, run('ipset', 'list', name).split('Members:\n')[1]?.trim()];
}

function many(): object {
  const services = Array.from(
    { length: 500 },
    (_, index): IpvsServiceKey => ({
      protocol: 'TCP',
      ip: ip(`10.2.${index >> 8}.${index & 255}`),
      port: 80,
    }),
  );
  const destinations = Array.from({ length: 10 }, (_, index) => ({
    ip: ip(`10.3.0.${index}`),
    port: 80,
    weight: 1,
  }));
  const changes = services.flatMap((service) => [
    newService(ipvs, { ...service, ...plain }),
    ...destinations.map((destination) => newDestination(ipvs, service, destination)),
  ]);
  const outcomes = applyChanges(socket, changes);
  return {
    states: [...new Set(outcomes.map(brief))],
    services: listServices(socket, ipvs).length,
    destinations: services.flatMap((service) => listDestinations(socket, ipvs, service)).length,
  };
}

function saved(): readonly string[] {
  const text = run('ipvsadm', '--save', '--numeric').trimEnd();
  return text === ''
    ? []
    : text
        .split('\n')
        .map((line) => line.trim())
        .sort();
}

function run(...argv: readonly string[]): string {
  const [program = '', ...words] = argv;
  const { stdout, stderr, status } = spawnSync(program, words, { encoding: 'utf8' });
  return status === 0 ? stdout : failed(`${argv.join(' ')}: ${stderr}`);
}

function failed(message: string): never {
  throw new Error(message);
}
