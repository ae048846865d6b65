/**
 * A table of packets: who dials what, and what becomes of it.
 *
 *   pod-a     tcp 10.96.1.1:80                     -> pod-a* pod-b pod-c     * the endpoint sees node1, not the client
 *   client    tcp 203.0.113.5:80 from 198.18.0.10  -> drop
 *   loopback  tcp 127.0.0.1:30080                  -> pod-a*                 node1 dials itself
 *   client    tcp 192.168.100.2:30080              -> sticky pod-a pod-b     one of these, and then always that one
 *   pod-a     tcp 10.96.1.1:80                     -> pod-a:8080* pod-a:8081*
 *   pod-a     udp 10.96.1.2:53                     -> reject                 tcp, udp or sctp
 *
 * `(rules only)` at the end: no real packet can be sent like this in the lab.
 */
import type { Transport } from '../../lab/protocol.ts';
import { ADDRESSES, addressOf, type HostName } from '../../lab/topology.ts';
import { type Family, familyOf, hostPort, type Ip, isLoopback, parseIp } from '../../src/model/ip.ts';
import type { Protocol } from '../../src/model/objects.ts';
import type { Packet } from '../../src/plan/decide.ts';
import { hostNamed } from './objects.ts';

/** A packet, and how to speak of it. */
export interface Subject {
  /** The row without its fate. */
  readonly text: string;
  readonly packet: Packet;
  /** Endpoints of one host are told apart by port. */
  readonly withPorts: boolean;
}

export interface Row extends Subject {
  readonly host: HostName;
  readonly transport: Transport;
  readonly family: Family;
  readonly fate: Fate;
  readonly inLab: boolean;
}

export type Fate =
  | { readonly verdict: 'forward'; readonly sticky: boolean; readonly targets: readonly Target[] }
  | { readonly verdict: Refusal };

export type Refusal = 'reject' | 'drop' | 'pass';

export interface Target {
  readonly host: string;
  readonly port: number | undefined;
  readonly masqueraded: boolean;
}

const ROW = /^(\S+)\s+(tcp|udp|sctp)\s+(\S+?):(\d+)(?:\s+from\s+(\S+))?\s+->\s+(.+?)(\s+\(rules only\))?$/;

export function parsePackets(text: string): readonly Row[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map(parseRow);
}

function parseRow(line: string): Row {
  const [, from = '', spokenBy = '', to = '', port, source, fateText = '', rulesOnly] = ROW.exec(line) ?? [];
  const destination = parseIp(to.replace(/^\[(.*)\]$/, '$1'));
  if (destination === undefined) throw new Error(`not a row of a packet table: ${line}`);
  const family = familyOf(destination);
  const host = from === 'loopback' ? 'node1' : hostNamed(from);
  const transport = transportNamed(spokenBy);
  const spoken = source === undefined ? sourceOf(host, destination, family) : parseIp(source);
  if (spoken === undefined) throw new Error(`not an address: ${source}`);
  const fate = parseFate(fateText);
  return {
    text: `${from} ${transport} ${hostPort(destination, Number(port))}${source === undefined ? '' : ` from ${source}`}`,
    host,
    transport,
    family,
    packet: {
      source: spoken,
      destination,
      protocol: PROTOCOL_OF[transport],
      port: Number(port),
      inInterface: interfaceOf(host),
    },
    fate,
    withPorts: namesPorts(fate),
    inLab: rulesOnly === undefined,
  };
}

const PROTOCOL_OF: Readonly<Record<Transport, Protocol>> = { tcp: 'TCP', udp: 'UDP', sctp: 'SCTP' };

function transportNamed(text: string): Transport {
  return text === 'udp' || text === 'sctp' ? text : 'tcp';
}

/** What a host dials itself by, it also dials from. */
function sourceOf(host: HostName, destination: Ip, family: Family): Ip {
  const own = isLoopback(destination) || ADDRESSES[host][family].includes(destination);
  return own ? destination : addressOf(host, family);
}

/** Where a packet of this host comes in at node1. */
export function interfaceOf(host: HostName): string | undefined {
  switch (host) {
    case 'node1':
      return undefined;
    case 'pod-a':
    case 'pod-b':
      return 'cni0';
    case 'client':
      return 'eth1';
    default:
      return 'eth0';
  }
}

function parseFate(text: string): Fate {
  if (text === 'reject' || text === 'drop' || text === 'pass') return { verdict: text };
  const words = text.split(/\s+/);
  const sticky = words[0] === 'sticky';
  return { verdict: 'forward', sticky, targets: words.slice(sticky ? 1 : 0).map(parseTarget) };
}

function parseTarget(word: string): Target {
  const [, name = '', port, star] = /^([a-z0-9-]+?)(?::(\d+))?(\*?)$/.exec(word) ?? [];
  return {
    host: hostNamed(name),
    port: port === undefined ? undefined : Number(port),
    masqueraded: star === '*',
  };
}

export function printRow(row: Pick<Subject, 'text'>, fate: Fate | string): string {
  return `${row.text} -> ${typeof fate === 'string' ? fate : printFate(fate)}`;
}

function printFate(fate: Fate): string {
  if (fate.verdict !== 'forward') return fate.verdict;
  const targets = fate.targets.map(printTarget).sort();
  return [...(fate.sticky ? ['sticky'] : []), ...targets].join(' ');
}

export function printTarget({ host, port, masqueraded }: Target): string {
  return `${host}${port === undefined ? '' : `:${port}`}${masqueraded ? '*' : ''}`;
}

function namesPorts(fate: Fate): boolean {
  return fate.verdict === 'forward' && fate.targets.some(({ port }) => port !== undefined);
}

const HOST_OF_ADDRESS: ReadonlyMap<string, string> = new Map(
  Object.entries(ADDRESSES).flatMap(([host, { IPv4, IPv6 }]) =>
    [...IPv4, ...IPv6].map((address) => [address, host] as const),
  ),
);

/** An endpoint as the row would name it. */
export function targetAt(
  row: Pick<Subject, 'withPorts'>,
  ip: string,
  port: number,
  masqueraded: boolean,
): Target {
  return {
    host: HOST_OF_ADDRESS.get(ip) ?? ip,
    port: row.withPorts ? port : undefined,
    masqueraded,
  };
}
