/** Ports and flags of TCP and UDP that are compared in a register, as options of `-m tcp` and `-m udp`. */
import type { Expression } from '../../../netlink/nftables/expressions.ts';
import type { Match } from '../rules/rule.ts';
import type { TransportName } from './decodeXt.ts';

type Of<K extends Expression['kind']> = Extract<Expression, { readonly kind: K }>;

const SOURCE_AT = 0;
const DESTINATION_AT = 2;
const TCP_FLAGS_AT = 13;

/** `--dport 80`, `--sport 1:5`; both where they are compared at once. `undefined` for what has no word here. */
export function portOptions(
  { offset, bytes }: Of<'payload'>,
  { comparison, value }: Pick<Of<'compare'>, 'comparison' | 'value'>,
): readonly Match[] | undefined {
  if (comparison !== '==' && comparison !== '!=') return undefined;
  const not = comparison === '!=';
  if (offset === SOURCE_AT && bytes === 4 && value.length === 4 && !not)
    return [sourcePort(portAt(value, 0)), destinationPort(portAt(value, 2))];
  if (bytes !== 2 || value.length !== 2) return undefined;
  const port = portAt(value, 0);
  if (offset === DESTINATION_AT) return [not ? option('--dport', String(port), not) : destinationPort(port)];
  return offset === SOURCE_AT ? [sourcePort(port, not)] : undefined;
}

export function portRange(
  { offset, bytes }: Of<'payload'>,
  { comparison, first, last }: Of<'range'>,
): readonly Match[] | undefined {
  if (bytes !== 2 || first.length !== 2 || last.length !== 2) return undefined;
  const name = offset === DESTINATION_AT ? '--dport' : '--sport';
  if (offset !== DESTINATION_AT && offset !== SOURCE_AT) return undefined;
  return [option(name, `${portAt(first, 0)}:${portAt(last, 0)}`, comparison === '!=')];
}

const FLAGS = ['FIN', 'SYN', 'RST', 'PSH', 'ACK', 'URG'] as const;
const ALL_FLAGS = (1 << FLAGS.length) - 1;

/** `--tcp-flags FIN,SYN,RST,ACK SYN` */
export function tcpFlags(
  protocol: TransportName,
  { offset, bytes }: Of<'payload'>,
  mask: Uint8Array,
  { comparison, value }: Pick<Of<'compare'>, 'comparison' | 'value'>,
): readonly Match[] | undefined {
  if (protocol !== 'tcp' || offset !== TCP_FLAGS_AT || bytes !== 1) return undefined;
  const [looked = 0, wanted = 0] = [mask[0], value[0]];
  if (mask.length !== 1 || value.length !== 1 || ((looked | wanted) & ~ALL_FLAGS) !== 0) return undefined;
  if (comparison !== '==' && comparison !== '!=') return undefined;
  return [option('--tcp-flags', flagNames(looked), comparison === '!=', flagNames(wanted))];
}

function flagNames(bits: number): string {
  return FLAGS.filter((_, index) => (bits & (1 << index)) !== 0).join(',') || 'NONE';
}

function portAt(value: Uint8Array, at: number): number {
  return ((value[at] ?? 0) << 8) | (value[at + 1] ?? 0);
}

function destinationPort(port: number): Match {
  return { kind: 'destinationPort', port };
}

function sourcePort(port: number, not = false): Match {
  return option('--sport', String(port), not);
}

function option(name: string, value: string, not: boolean, ...more: readonly string[]): Match {
  return { kind: 'other', args: [...(not ? ['!'] : []), name, value, ...more] };
}
