import { describe, expect, it } from 'vitest';
import {
  type BindResult,
  type PortAddress,
  type HeldPort,
  HeldPorts,
  heldPortsOf,
} from '../../src/system/heldPorts.ts';
import { Cluster, cluster } from '../plan/cluster.ts';
import { cidr, ip, VIEW, VIEW_6 } from '../plan/given.ts';

const LOCAL = ['127.0.0.1', '192.0.2.10', '198.51.100.7'].map(ip);

function print(ports: readonly HeldPort[]): readonly string[] {
  return ports.map((held) => `${held.ip}:${held.port}/${held.protocol} ${held.description}`).sort();
}

describe('what is held', () => {
  it('is node ports on every address, and external IPs that are ours', () => {
    const { planner } = cluster(
      'shop/web 10.96.0.1 http:80@30080 https:443 ext=198.51.100.7,203.0.113.9 lb=192.0.2.10',
      'shop/dns 10.96.0.2 dns:53/udp@30053',
      'shop/db 10.96.0.3 5432',
    );
    expect(print(heldPortsOf(planner, LOCAL))).toEqual([
      '198.51.100.7:443/TCP external IP of shop/web:https',
      '198.51.100.7:80/TCP external IP of shop/web:http',
      ':30053/UDP node port of shop/dns:dns',
      ':30080/TCP node port of shop/web:http',
    ]);
  });

  it('leaves SCTP alone', () => {
    expect(heldPortsOf(cluster('shop/sig 10.96.0.1 9/sctp@30009').planner, LOCAL)).toEqual([]);
  });

  it('is one socket where an external IP has the number of a node port', () => {
    const { planner } = cluster(
      'shop/a 10.96.0.1 80@30080',
      'shop/b 10.96.0.2 30080 ext=198.51.100.7',
      'shop/c 10.96.0.3 30080/udp ext=198.51.100.7',
    );
    expect(print(heldPortsOf(planner, LOCAL))).toEqual([
      '198.51.100.7:30080/UDP external IP of shop/c',
      ':30080/TCP node port of shop/a',
    ]);
  });

  it.each([
    { ranges: ['192.0.2.0/24'], loopback: false, expected: ['192.0.2.10'] },
    { ranges: ['192.0.2.0/24', '127.0.0.0/8'], loopback: true, expected: ['127.0.0.1', '192.0.2.10'] },
    { ranges: ['192.0.2.0/24', '127.0.0.0/8'], loopback: false, expected: ['192.0.2.10'] },
    { ranges: ['203.0.113.0/24'], loopback: false, expected: [] },
  ])('follows the node-port addresses $ranges', ({ ranges, loopback, expected }) => {
    const made = new Cluster({ ...VIEW, nodePorts: { ranges: ranges.map(cidr), loopback } });
    made.tell('shop/web 10.96.0.1 80@30080').replan();
    expect(heldPortsOf(made.planner, LOCAL).map((held) => held.ip)).toEqual(expected);
  });

  it('leaves out link-local addresses, which mean nothing without an interface', () => {
    const view = {
      ...VIEW_6,
      nodePorts: { ranges: [cidr('fe80::/10'), cidr('2001:db8::/64')], loopback: false },
    };
    const made = new Cluster(view, 'IPv6');
    made.tell('shop/web fd00:96::1 80@30080').replan();
    const held = heldPortsOf(made.planner, [ip('fe80::1'), ip('2001:db8::10')]);
    expect(print(held)).toEqual(['2001:db8::10:30080/TCP node port of shop/web']);
    expect(held[0]?.family).toBe('IPv6');
  });
});

/** A machine on which some ports are taken. */
class Machine {
  readonly bound: string[] = [];
  readonly taken = new Map<string, string>();
  readonly messages: string[] = [];
  lookups = 0;
  readonly ports = new HeldPorts({
    bind: (address) => this.#bind(address),
    ownersOf: (ports) => {
      this.lookups += 1;
      return new Map(ports.map((port) => [port, { pid: 321, command: 'nginx' }]));
    },
    onEvent: (_, message) => this.messages.push(message),
  });

  #bind({ ip: address, port, protocol }: PortAddress): BindResult {
    const key = `${address}:${port}/${protocol}`;
    const errno = this.taken.get(key);
    if (errno !== undefined) return { kind: 'refused', errno };
    this.bound.push(key);
    return { kind: 'bound', close: () => void this.bound.splice(this.bound.indexOf(key), 1) };
  }

  reconcile(...ports: readonly number[]): readonly string[] {
    this.messages.length = 0;
    this.ports.reconcile(
      ports.map((port) => ({
        family: 'IPv4',
        ip: '',
        port,
        protocol: 'TCP',
        description: 'node port of shop/web',
      })),
    );
    return [...this.messages];
  }
}

describe('reconciling', () => {
  it('opens new ones, keeps those that stay, and closes the others', () => {
    const machine = new Machine();
    machine.reconcile(1, 2);
    machine.reconcile(2, 3);
    expect(machine.bound).toEqual([':2/TCP', ':3/TCP']);
    expect(machine.ports.size).toBe(2);
    machine.ports.close();
    expect(machine.bound).toEqual([]);
  });

  it('tells once of a port that is taken, with who has it, and tries again each time', () => {
    const machine = new Machine();
    machine.taken.set(':30080/TCP', 'EADDRINUSE');
    expect(machine.reconcile(30080, 30081)).toEqual([
      '30080/TCP (IPv4), the node port of shop/web, is taken by pid 321 (nginx), whose clients reach the service instead; move that program to another port',
    ]);
    expect(machine.reconcile(30080, 30081)).toEqual([]);
    expect([machine.ports.refused, machine.lookups]).toEqual([1, 1]);
    machine.taken.clear();
    expect(machine.reconcile(30080, 30081)).toEqual([
      '30080/TCP (IPv4), the node port of shop/web, is held now',
    ]);
    expect([machine.ports.refused, machine.ports.size]).toEqual([0, 2]);
  });

  it('tells again when a port was wanted no longer in between, or the reason is another', () => {
    const machine = new Machine();
    machine.taken.set(':30080/TCP', 'EADDRINUSE');
    expect(machine.reconcile(30080)).toHaveLength(1);
    expect(machine.reconcile()).toEqual([]);
    expect(machine.reconcile(30080)).toHaveLength(1);
    machine.taken.set(':30080/TCP', 'EMFILE');
    expect(machine.reconcile(30080)).toEqual([
      '30080/TCP (IPv4), the node port of shop/web, cannot be held: EMFILE',
    ]);
  });

  it('looks for owners once, however many ports are taken', () => {
    const machine = new Machine();
    for (const port of [1, 2, 3]) machine.taken.set(`:${port}/TCP`, 'EADDRINUSE');
    expect(machine.reconcile(1, 2, 3)).toHaveLength(3);
    expect(machine.lookups).toBe(1);
  });
});
