/** What the targets of iptables do with a packet, ours and those of other programs. */
import { familyOf, LOOPBACK, parseIp } from '../../../model/ip.ts';
import type { PacketState, WalkContext, WalkVerdict } from '../../kernelRules.ts';
import { markIn } from './words.ts';

/** Target extensions of iptables and ip6tables that change what a later rule, or the path of the packet, depends on. */
const EXTENSIONS: ReadonlySet<string> = new Set(
  (
    'CLUSTERIP CONNMARK CT DNAT DNPT HMARK MARK MASQUERADE NETMAP NFQUEUE NOTRACK QUEUE REDIRECT REJECT SNAT SNPT ' +
    'SYNPROXY TPROXY ACCEPT DROP RETURN'
  ).split(' '),
);

/** Any other name is a chain's. */
export function isChain(name: string): boolean {
  return !EXTENSIONS.has(name) && !PASSING.has(name);
}

/** What a target makes of a packet. */
export interface TargetEffect {
  readonly verdict?: WalkVerdict;
  readonly mark?: number;
  readonly isUntracked?: true;
  /** What could not be evaluated. */
  readonly note?: string;
}

/** These change nothing that a later rule, or the path of the packet, depends on. */
const PASSING: ReadonlySet<string> = new Set(
  (
    'AUDIT CHECKSUM CLASSIFY CONNSECMARK DSCP ECN HL IDLETIMER LED LOG NFLOG RATEEST SECMARK SET TCPMSS ' +
    'TCPOPTSTRIP TEE TOS TRACE TTL ULOG'
  ).split(' '),
);

/** Then it does not matter whether its rule matches. */
export function isPassing([, name = '', option]: readonly string[]): boolean {
  return PASSING.has(name) || (name === 'CONNMARK' && option !== '--restore-mark');
}

/** `-j MARK --set-xmark 0x1/0x1` */
export function effectOfText(text: string, state: PacketState, context: WalkContext): TargetEffect {
  return effectOf(text.split(' '), state, context);
}

export function effectOf(
  target: readonly string[],
  state: PacketState,
  { localIp }: WalkContext,
): TargetEffect {
  const [jump, name = '', ...rest] = target;
  if (jump === undefined) return {};
  if (jump === '-g') return { verdict: { kind: 'goto', chain: name } };
  if (jump === '-j' && isPassing(target)) return {};
  const valueOf = (option: string): string => rest[rest.indexOf(option) + 1] ?? '';
  switch (jump === '-j' ? name : '') {
    case 'ACCEPT':
      return { verdict: { kind: 'accept' } };
    case 'DROP':
      return { verdict: { kind: 'drop' } };
    case 'RETURN':
      return { verdict: { kind: 'return' } };
    case 'REJECT':
      return { verdict: { kind: 'reject' } };
    case 'MASQUERADE':
      return { verdict: { kind: 'masquerade' } };
    case 'DNAT':
      return dnatTo(valueOf('--to-destination'), state);
    case 'SNAT':
      return snatTo(valueOf('--to-source'));
    case 'REDIRECT': {
      // To the address of the interface that it came in by.
      const ip = state.point === 'output' ? LOOPBACK[familyOf(state.destination)] : localIp;
      const port = rest.includes('--to-ports') ? Number(valueOf('--to-ports')) : state.port;
      return ip === undefined || Number.isNaN(port)
        ? unknown(target)
        : { verdict: { kind: 'dnat', ip, port } };
    }
    case 'NOTRACK':
      return { isUntracked: true };
    case 'CT':
      return rest.includes('--notrack') ? { isUntracked: true } : {};
    case 'MARK': {
      const mark = markAfter(rest, state.mark);
      return mark === undefined ? unknown(target) : { mark };
    }
    default:
      if (jump !== '-j' || !isChain(name) || rest.length > 0) return unknown(target);
      return { verdict: { kind: 'jump', chain: name } };
  }
}

function unknown(target: readonly string[]): TargetEffect {
  return { note: `not evaluated, taken as passing: ${target.join(' ')}` };
}

/** One address, with a port or without. */
function dnatTo(to: string, { port }: PacketState): TargetEffect {
  const whole = parseIp(to);
  if (whole !== undefined) return { verdict: { kind: 'dnat', ip: whole, port } };
  const [, bracketed, plain, toPort] = /^(?:\[(.*)\]|(.*)):(\d+)$/.exec(to) ?? [];
  const ip = parseIp(bracketed ?? plain ?? '');
  if (ip !== undefined) return { verdict: { kind: 'dnat', ip, port: Number(toPort) } };
  return { verdict: { kind: 'accept' }, note: `not evaluated, not one address and port: ${to}` };
}

/** `192.0.2.1`, `192.0.2.1:1024-65535`, `[2001:db8::1]:1024-65535` */
function snatTo(to: string): TargetEffect {
  const address = /^\[(.*)\]/.exec(to)?.[1] ?? (parseIp(to) === undefined ? to.replace(/:[\d-]+$/, '') : to);
  const ip = parseIp(address);
  if (ip !== undefined) return { verdict: { kind: 'snat', ip } };
  return { verdict: { kind: 'masquerade' }, note: `not evaluated, not one address: ${to}` };
}

/** `--set-xmark 0x5/0xff`: clears the bits of the mask, and flips those of the value. */
function markAfter([option, text = '', ...rest]: readonly string[], mark: number): number | undefined {
  const { number, mask } = markIn(text);
  if (rest.length > 0 || Number.isNaN(number + mask)) return undefined;
  switch (option) {
    case '--or-mark':
      return (mark | number) >>> 0;
    case '--xor-mark':
      return (mark ^ number) >>> 0;
    case '--and-mark':
      return (mark & number) >>> 0;
    case '--set-mark':
      return ((mark & ~mask) | number) >>> 0;
    case '--set-xmark':
      return ((mark & ~mask) ^ number) >>> 0;
    default:
      return undefined;
  }
}
