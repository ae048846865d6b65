/**
 * Matches and targets of iptables in rules of nf_tables, as iptables would print them: those that decide most often. The
 * structures are those of linux/netfilter/xt_*.h, with numbers in the machine's byte order.
 */
import { LITTLE_ENDIAN, viewOf } from '../../../netlink/codec.ts';
import { decodeIp } from '../../../netlink/inet.ts';
import { decodeText } from '../../../netlink/kinds.ts';
import type { Expression } from '../../../netlink/nftables/expressions.ts';
import { ADDRESS_TYPES, CONNTRACK_STATES, TCP_FLAGS } from '../../matches.ts';

type XtExpression = Extract<Expression, { readonly kind: 'xt match' | 'xt target' }>;

type Structure = DataView;

const u16 = (info: Structure, at: number): number => info.getUint16(at, LITTLE_ENDIAN);
const u32 = (info: Structure, at: number): number => info.getUint32(at, LITTLE_ENDIAN);

function bytesAt(info: Structure, at: number, length?: number): Uint8Array {
  return new Uint8Array(info.buffer, info.byteOffset + at, length);
}

/** `undefined`: it says something that has no words here. */
type Print = (info: Structure) => string | undefined;

/** By name and revision, with how long a structure is at least. */
const PRINTERS: Readonly<Record<string, readonly [bytes: number, print: Print]>> = {
  'comment 0': [1, (info) => `--comment "${decodeText(bytesAt(info, 0))}"`],
  'conntrack 2': [152, conntrack],
  'conntrack 3': [152, conntrack],
  'addrtype 1': [8, addressTypes],
  'mark 1': [9, (info) => `${not(info.getUint8(8))}--mark ${hex(u32(info, 0))}/${hex(u32(info, 4))}`],
  'multiport 1': [48, multiport],
  'tcp 0': [12, tcp],
  'udp 0': [9, (info) => ports(info, info.getUint8(8))],
  'MARK 2': [8, (info) => `--set-xmark ${hex(u32(info, 0))}/${hex(u32(info, 4))}`],
  'DNAT 2': [40, destination],
};

/** As a rule of iptables has it: `-m conntrack --ctstate NEW`. `undefined`: it is not known. */
export function printIptables({ kind, name, revision, info }: XtExpression): string | undefined {
  const flag = kind === 'xt match' ? '-m' : '-j';
  const [bytes, print] = PRINTERS[`${name} ${revision}`] ?? [];
  if (!print || bytes === undefined) return kind === 'xt match' ? undefined : `-j ${name}`;
  const text = info.length < bytes ? undefined : print(viewOf(info));
  return text === undefined ? undefined : `${flag} ${name} ${text}`.trimEnd();
}

function not(flags: number): string {
  return flags === 0 ? '' : '! ';
}

function hex(value: number): string {
  return `0x${value.toString(16)}`;
}

function statesIn(bits: number): string {
  return Object.keys(CONNTRACK_STATES)
    .filter((state) => (bits & (CONNTRACK_STATES[state] ?? 0)) !== 0)
    .join(',');
}

/** XT_CONNTRACK_STATE, and XT_CONNTRACK_STATE_ALIAS of a rule that was written with `-m state`. */
const ASKS_STATE = 1;
const ASKS_BY_ALIAS = 1 << 13;

/** struct xt_conntrack_mtinfo3: only what is about the state. */
function conntrack(info: Structure): string | undefined {
  if ((u16(info, 146) & ~ASKS_BY_ALIAS) !== ASKS_STATE) return undefined;
  return `${not(u16(info, 148) & ASKS_STATE)}--ctstate ${statesIn(u16(info, 150))}`;
}

const INVERT_SOURCE = 1;
const INVERT_DESTINATION = 2;

function addressTypes(info: Structure): string | undefined {
  const flags = u32(info, 4);
  if ((flags & ~(INVERT_SOURCE | INVERT_DESTINATION)) !== 0) return undefined;
  const typesIn = (bits: number): string =>
    ADDRESS_TYPES.filter((_, number) => (bits & (1 << number)) !== 0).join(',');
  const [source, destinations] = [typesIn(u16(info, 0)), typesIn(u16(info, 2))];
  return [
    ...(source === '' ? [] : [`${not(flags & INVERT_SOURCE)}--src-type ${source}`]),
    ...(destinations === '' ? [] : [`${not(flags & INVERT_DESTINATION)}--dst-type ${destinations}`]),
  ].join(' ');
}

const MAX_PORTS = 15;
const SIDES = ['sports', 'dports', 'ports'];

/** struct xt_multiport_v1 */
function multiport(info: Structure): string | undefined {
  const count = info.getUint8(1);
  const side = SIDES[info.getUint8(0)];
  if (side === undefined || count > MAX_PORTS) return undefined;
  let list = '';
  for (let index = 0; index < count; index++) {
    const isRange = info.getUint8(2 + 2 * MAX_PORTS + index) !== 0;
    list += `${u16(info, 2 + 2 * index)}${index === count - 1 ? '' : isRange ? ':' : ','}`;
  }
  return `${not(info.getUint8(47))}--${side} ${list}`;
}

const ANY_PORT = 0xffff;
const INVERT_FLAGS = 4;

/** struct xt_tcp and xt_udp begin with the ports of the client, and those that are dialled. */
function ports(info: Structure, invert: number): string {
  const options = ['--sport', '--dport'].flatMap((option, index) => {
    const [first, last] = [u16(info, 4 * index), u16(info, 4 * index + 2)];
    const isInverted = invert & (1 << index);
    return first === 0 && last === ANY_PORT && !isInverted
      ? []
      : [`${not(isInverted)}${option} ${first === last ? first : `${first}:${last}`}`];
  });
  return options.join(' ');
}

function tcp(info: Structure): string | undefined {
  const [option, mask, flags, invert] = [
    info.getUint8(8),
    info.getUint8(9),
    info.getUint8(10),
    info.getUint8(11),
  ];
  if (option !== 0) return undefined;
  if (mask === 0) return ports(info, invert);
  const names = (bits: number): string =>
    TCP_FLAGS.filter((_, number) => (bits & (1 << number)) !== 0).join(',') || 'NONE';
  return `${ports(info, invert)} ${not(invert & INVERT_FLAGS)}--tcp-flags ${names(mask)} ${names(flags)}`.trim();
}

const MAP_ADDRESS = 1;
const MAP_PORT = 2;

/** struct nf_nat_range2, where it is one address and at most one port. */
function destination(info: Structure): string | undefined {
  if ((u32(info, 0) & MAP_ADDRESS) === 0) return undefined;
  const isIpv6 = bytesAt(info, 8, 12).some((byte) => byte !== 0);
  const [first, last] = [4, 20].map((at) => bytesAt(info, at, isIpv6 ? 16 : 4));
  const hasPort = (u32(info, 0) & MAP_PORT) !== 0;
  if (!first || !last || Buffer.compare(first, last) !== 0) return undefined;
  if (hasPort && info.getUint16(36) !== info.getUint16(38)) return undefined;
  const ip = decodeIp(first);
  if (!hasPort) return `--to-destination ${ip}`;
  return `--to-destination ${isIpv6 ? `[${ip}]` : ip}:${info.getUint16(36)}`;
}
