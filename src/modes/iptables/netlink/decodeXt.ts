/** Matches and targets of iptables out of their structures, as `parseRule` makes them of what `iptables-save` prints. */
import type { Family, Ip } from '../../../model/ip.ts';
import { decodeIp } from '../../../netlink/inet.ts';
import type { Expression } from '../../../netlink/nftables/expressions.ts';
import {
  ADDRTYPE_INVERT_DESTINATION,
  ADDRTYPE_INVERT_SOURCE,
  ADDRTYPE_LOCAL,
  CONNTRACK_STATE,
  CONNTRACK_STATES,
  HOST_MASK,
  IPVS_VIRTUAL_SERVER,
  NF_NAT_RANGE_MAP_IPS,
  NF_NAT_RANGE_PROTO_RANDOM_FULLY,
  NF_NAT_RANGE_PROTO_SPECIFIED,
  PHYSDEV_IS_IN,
  PORT_UNREACHABLE,
  RECENT_CHECK,
  RECENT_REAP,
  RECENT_SET,
  SCTP_PORT,
  XT_MATCHES,
  XT_TARGETS,
} from '../../../netlink/xtables.ts';
import { isPlainComment } from '../rules/print.ts';
import type { ConntrackState, Match, Target } from '../rules/rule.ts';

export interface DecodeContext {
  readonly family: Family;
  /** The name of a set by the kernel's number of it. Without it, matches of sets are `other`. */
  readonly setName?: (index: number) => string | undefined;
}

export type TransportName = Extract<Match, { readonly kind: 'protocol' }>['protocol'];
const TRANSPORTS: ReadonlyMap<number, TransportName> = new Map([
  [6, 'tcp'],
  [17, 'udp'],
  [132, 'sctp'],
]);

export function transportName(number: number): TransportName | undefined {
  return TRANSPORTS.get(number);
}

type XtMatch = Extract<Expression, { readonly kind: 'xt match' }>;
type XtTarget = Extract<Expression, { readonly kind: 'xt target' }>;

/** `undefined` for what has no word here. */
export function decodeMatch(
  { name, revision, info }: XtMatch,
  context: DecodeContext,
): readonly Match[] | undefined {
  const match = MATCHES.get(name)?.(revision, info, context);
  return match && ('kind' in match ? [match] : match);
}

type Decode = (
  revision: number,
  info: Uint8Array,
  context: DecodeContext,
) => Match | readonly Match[] | undefined;

const MATCHES: ReadonlyMap<string, Decode> = new Map<string, Decode>([
  ['comment', comment],
  ['tcp', tcp],
  ['udp', udp],
  ['sctp', sctp],
  ['addrtype', addressType],
  ['conntrack', conntrackState],
  ['mark', mark],
  ['statistic', statistic],
  ['recent', recent],
  ['physdev', physdev],
  ['nfacct', nfacct],
  ['set', set],
  ['ipvs', virtualServer],
]);

function comment(revision: number, info: Uint8Array): Match | undefined {
  const text = XT_MATCHES.comment.decode(revision, info)?.text;
  if (text === undefined) return undefined;
  if (isPlainComment(text)) return { kind: 'comment', text };
  return { kind: 'other', args: ['-m', 'comment', '--comment', text] };
}

interface Ports {
  readonly sourcePort: number;
  readonly lastSourcePort: number;
  readonly port: number;
  readonly lastPort: number;
}

const ANY_PORT = 0xffff;

/** Of one port at most. */
function withPort(protocol: TransportName, ports: Ports): readonly Match[] | undefined {
  const { sourcePort, lastSourcePort, port, lastPort } = ports;
  if (sourcePort !== 0 || lastSourcePort !== ANY_PORT) return undefined;
  if (port === 0 && lastPort === ANY_PORT) return [{ kind: 'protocol', protocol }];
  return port === lastPort
    ? [
        { kind: 'protocol', protocol },
        { kind: 'destinationPort', port },
      ]
    : undefined;
}

function tcp(revision: number, info: Uint8Array): readonly Match[] | undefined {
  const fields = XT_MATCHES.tcp.decode(revision, info);
  if (!fields || fields.option + fields.flagMask + fields.flags + fields.invert > 0) return undefined;
  return withPort('tcp', fields);
}

function udp(revision: number, info: Uint8Array): readonly Match[] | undefined {
  const fields = XT_MATCHES.udp.decode(revision, info);
  return fields?.invert === 0 ? withPort('udp', fields) : undefined;
}

function sctp(revision: number, info: Uint8Array): readonly Match[] | undefined {
  const fields = XT_MATCHES.sctp.decode(revision, info);
  if (!fields || fields.invert > 0 || fields.flagCount > 0) return undefined;
  const { asked, port, lastPort } = fields;
  if (asked === 0) return [{ kind: 'protocol', protocol: 'sctp' }];
  if (asked !== SCTP_PORT || port !== lastPort) return undefined;
  return [
    { kind: 'protocol', protocol: 'sctp' },
    { kind: 'destinationPort', port },
  ];
}

function addressType(revision: number, info: Uint8Array): Match | undefined {
  const fields = XT_MATCHES.addrtype.decode(revision, info);
  if (!fields) return undefined;
  const { source, destination, flags } = fields;
  const is = (side: 'src' | 'dst', inversion: number): Match | undefined =>
    flags === 0 || flags === inversion
      ? { kind: 'addressType', side, type: 'LOCAL', not: flags !== 0 }
      : undefined;
  if (source === ADDRTYPE_LOCAL && destination === 0) return is('src', ADDRTYPE_INVERT_SOURCE);
  if (source === 0 && destination === ADDRTYPE_LOCAL) return is('dst', ADDRTYPE_INVERT_DESTINATION);
  return undefined;
}

/** In the order in which a save prints them. */
const STATE_ORDER: readonly ConntrackState[] = [
  'INVALID',
  'NEW',
  'RELATED',
  'ESTABLISHED',
  'UNTRACKED',
  'SNAT',
  'DNAT',
];

function conntrackState(revision: number, info: Uint8Array): Match | undefined {
  const fields = XT_MATCHES.conntrack.decode(revision, info);
  if (!fields || fields.asked !== CONNTRACK_STATE || fields.invert > CONNTRACK_STATE) return undefined;
  const states = STATE_ORDER.filter((state) => (fields.states & CONNTRACK_STATES[state]) !== 0);
  const known = states.reduce((bits, state) => bits | CONNTRACK_STATES[state], 0);
  if (states.length === 0 || known !== fields.states) return undefined;
  return { kind: 'conntrackState', states, not: fields.invert === CONNTRACK_STATE };
}

function mark(revision: number, info: Uint8Array): Match | undefined {
  const fields = XT_MATCHES.mark.decode(revision, info);
  return fields && { kind: 'mark', value: fields.mark, mask: fields.mask, not: fields.isInverted !== 0 };
}

const RANDOM = 0;

function statistic(revision: number, info: Uint8Array): Match | undefined {
  const fields = XT_MATCHES.statistic.decode(revision, info);
  if (!fields || fields.mode !== RANDOM || fields.isInverted !== 0) return undefined;
  return { kind: 'statistic', probability: (fields.probability / 2 ** 31).toFixed(11) };
}

/** XT_RECENT_SOURCE */
const BY_SOURCE = 0;

function recent(revision: number, info: Uint8Array): Match | undefined {
  const fields = XT_MATCHES.recent.decode(revision, info);
  if (!fields || fields.hits + fields.isInverted > 0 || fields.side !== BY_SOURCE) return undefined;
  if (!isSame(fields.mask, HOST_MASK)) return undefined;
  const { name, seconds, operation } = fields;
  if (operation === RECENT_SET) return seconds === 0 ? { kind: 'recentSet', name } : undefined;
  if ((operation & ~RECENT_REAP) !== RECENT_CHECK || seconds === 0) return undefined;
  return { kind: 'recentCheck', name, seconds, reap: (operation & RECENT_REAP) !== 0 };
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

function physdev(revision: number, info: Uint8Array): Match | undefined {
  const fields = XT_MATCHES.physdev.decode(revision, info);
  if (fields?.asked !== PHYSDEV_IS_IN || (fields.invert & ~PHYSDEV_IS_IN) !== 0) return undefined;
  return { kind: 'physdevIsIn', not: fields.invert !== 0 };
}

function nfacct(revision: number, info: Uint8Array): Match | undefined {
  const fields = XT_MATCHES.nfacct.decode(revision, info);
  return fields && { kind: 'nfacct', name: fields.name };
}

const MOST_SIDES = 6;

function set(revision: number, info: Uint8Array, { setName }: DecodeContext): Match | undefined {
  const fields = XT_MATCHES.set.decode(revision, info);
  if (!fields) return undefined;
  const { index, sides: length, flags } = fields;
  const name = setName?.(index);
  if (name === undefined || length === 0 || length > MOST_SIDES) return undefined;
  if ((flags & ~((2 << length) - 2)) !== 0) return undefined;
  const sides = Array.from({ length }, (_, at) => ((flags & (2 << at)) === 0 ? 'dst' : 'src'));
  return { kind: 'set', name, sides };
}

function virtualServer(revision: number, info: Uint8Array, { family }: DecodeContext): Match | undefined {
  const fields = XT_MATCHES.ipvs.decode(revision, info);
  if (fields?.asked !== IPVS_VIRTUAL_SERVER || fields.invert + fields.forwarding + fields.controlPort > 0)
    return undefined;
  const protocol = transportName(fields.protocol);
  if (protocol === undefined || !isSame(fields.mask, HOST_MASK)) return undefined;
  const address = addressIn(fields.address, family);
  if (address === undefined) return undefined;
  return { kind: 'virtualServer', protocol, address, port: fields.port };
}

/** `undefined` for what has no word here. */
export function decodeTarget({ name, revision, info }: XtTarget, family: Family): Target | undefined {
  switch (name) {
    case 'MARK':
      return markTarget(revision, info);
    case 'DNAT':
      return dnat(revision, info, family);
    case 'MASQUERADE': {
      const structure = family === 'IPv4' ? XT_TARGETS.MASQUERADE : XT_TARGETS.MASQUERADE6;
      const flags = structure.decode(revision, info)?.flags;
      if (flags !== 0 && flags !== NF_NAT_RANGE_PROTO_RANDOM_FULLY) return undefined;
      return { kind: 'masquerade', randomFully: flags !== 0 };
    }
    case 'REJECT': {
      const isDefault = XT_TARGETS.REJECT.decode(revision, info)?.with === PORT_UNREACHABLE[family];
      return isDefault ? { kind: 'reject' } : undefined;
    }
    default:
      return undefined;
  }
}

/** A save prints `--set-xmark 0x4000/0x4000`, also of `--or-mark`. */
function markTarget(revision: number, info: Uint8Array): Target | undefined {
  const fields = XT_TARGETS.MARK.decode(revision, info);
  if (!fields) return undefined;
  const { mark: value, mask } = fields;
  if (mask === 0) return { kind: 'mark', operation: 'xor', value };
  if (mask === value) return { kind: 'mark', operation: 'set', value };
  const text = `0x${value.toString(16)}/0x${mask.toString(16)}`;
  return { kind: 'other', args: ['-j', 'MARK', '--set-xmark', text] };
}

function dnat(revision: number, info: Uint8Array, family: Family): Target | undefined {
  const fields = XT_TARGETS.DNAT.decode(revision, info);
  if (!fields || !isSame(fields.first, fields.last) || fields.port !== fields.lastPort) return undefined;
  const ip = addressIn(fields.first, family);
  if (ip === undefined) return undefined;
  if (fields.flags === NF_NAT_RANGE_MAP_IPS) return { kind: 'dnat', to: ip };
  if (fields.flags !== (NF_NAT_RANGE_MAP_IPS | NF_NAT_RANGE_PROTO_SPECIFIED)) return undefined;
  return { kind: 'dnat', to: family === 'IPv4' ? `${ip}:${fields.port}` : `[${ip}]:${fields.port}` };
}

/** union nf_inet_addr */
function addressIn(bytes: Uint8Array, family: Family): Ip | undefined {
  const length = family === 'IPv4' ? 4 : 16;
  return bytes.subarray(length).some((byte) => byte !== 0) ? undefined : decodeIp(bytes.subarray(0, length));
}
