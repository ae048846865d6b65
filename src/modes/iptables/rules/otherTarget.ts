/** Targets that Junction never writes, as other programs do. */
import { type Family, familyOf, type Ip, LOOPBACK, parseIp } from '../../../model/ip.ts';
import type { WalkVerdict, Way } from '../../walk.ts';

/** What a target makes of a packet. */
export interface TargetEffect {
  readonly verdict?: WalkVerdict;
  readonly mark?: number;
  readonly isUntracked?: true;
  /** What could not be evaluated. */
  readonly note?: string;
}

/** These change nothing that a later rule of ours, or the way of the packet, depends on. */
const PASSING: ReadonlySet<string> = new Set(
  (
    'AUDIT CHECKSUM CLASSIFY CONNSECMARK DSCP ECN HL IDLETIMER LED LOG NFLOG RATEEST SECMARK SET TCPMSS ' +
    'TCPOPTSTRIP TEE TOS TRACE TTL ULOG'
  ).split(' '),
);

/** Whether it decides nothing about the packet: then it does not matter whether its rule matches. */
export function isPassing([, name = '', option]: readonly string[]): boolean {
  return PASSING.has(name) || (name === 'CONNMARK' && option !== '--restore-mark');
}

/** `args` as a rule has them: `-g CHAIN`, `-j REJECT --reject-with tcp-reset`. */
export function effectOfOther(
  args: readonly string[],
  way: Way<unknown>,
  localIp: (family: Family) => Ip | undefined,
): TargetEffect {
  const [jump, name = '', ...rest] = args;
  if (jump === '-g') return { verdict: { kind: 'goto', chain: name } };
  if (jump === '-j' && isPassing(args)) return {};
  const valueOf = (option: string): string | undefined => {
    const at = rest.indexOf(option);
    return at < 0 ? undefined : rest[at + 1];
  };
  switch (jump === '-j' ? name : '') {
    case 'REJECT':
      return { verdict: { kind: 'reject' } };
    case 'DNAT':
      return dnatTo(valueOf('--to-destination') ?? '', way);
    case 'REDIRECT':
      return redirectTo(valueOf('--to-ports'), way, localIp);
    case 'MASQUERADE':
      return { verdict: { kind: 'masquerade' } };
    case 'SNAT':
      return snatTo(valueOf('--to-source') ?? '');
    case 'NOTRACK':
      return { isUntracked: true };
    case 'CT':
      return rest.includes('--notrack') ? { isUntracked: true } : {};
    case 'MARK': {
      const mark = markAfterOther(rest, way.mark);
      return mark === undefined ? unknown(args) : { mark };
    }
    default:
      return unknown(args);
  }
}

function unknown(args: readonly string[]): TargetEffect {
  return { note: `not evaluated, taken as passing: ${args.join(' ')}` };
}

/** One address, with a port or without. */
export function dnatTo(to: string, way: Pick<Way<unknown>, 'port'>): TargetEffect {
  const whole = parseIp(to);
  if (whole !== undefined) return { verdict: { kind: 'dnat', ip: whole, port: way.port } };
  const [, bracketed, plain, port] = /^(?:\[(.*)\]|(.*)):(\d+)$/.exec(to) ?? [];
  const ip = parseIp(bracketed ?? plain ?? '');
  if (ip !== undefined) return { verdict: { kind: 'dnat', ip, port: Number(port) } };
  return { verdict: { kind: 'accept' }, note: `not evaluated, not one address and port: ${to}` };
}

/** To the address of the interface that it came in by. */
function redirectTo(
  ports: string | undefined,
  way: Way<unknown>,
  localIp: (family: Family) => Ip | undefined,
): TargetEffect {
  const family = familyOf(way.destination);
  const ip = way.hook.endsWith(' output') ? LOOPBACK[family] : localIp(family);
  const port = ports === undefined ? way.port : Number(ports);
  if (ip === undefined || Number.isNaN(port)) return unknown(['-j', 'REDIRECT', ...(ports ? [ports] : [])]);
  return { verdict: { kind: 'dnat', ip, port } };
}

/** `192.0.2.1`, `192.0.2.1:1024-65535`, `[2001:db8::1]:1024-65535` */
function snatTo(to: string): TargetEffect {
  const address = /^\[(.*)\]/.exec(to)?.[1] ?? (parseIp(to) === undefined ? to.replace(/:[\d-]+$/, '') : to);
  const ip = parseIp(address);
  if (ip !== undefined) return { verdict: { kind: 'snat', ip } };
  return { verdict: { kind: 'masquerade' }, note: `not evaluated, not one address: ${to}` };
}

const MARK_OPTION = /^--(set-xmark|set-mark|and-mark)$/;

/** `--set-xmark 0x5/0xff`: clears the bits of the mask, and flips those of the value. */
function markAfterOther(
  [option = '', text = '', ...rest]: readonly string[],
  mark: number,
): number | undefined {
  const [, operation] = MARK_OPTION.exec(option) ?? [];
  const [value, mask = 0xffff_ffff, ...more] = text.split('/').map(Number);
  if (operation === undefined || value === undefined || rest.length + more.length > 0) return undefined;
  if (Number.isNaN(value + mask)) return undefined;
  if (operation === 'and-mark') return (mark & value) >>> 0;
  const cleared = mark & ~mask;
  return (operation === 'set-mark' ? cleared | value : cleared ^ value) >>> 0;
}
