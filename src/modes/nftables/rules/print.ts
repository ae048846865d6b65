/** Words of nft: families, fields of sets, elements, times. */
import type { Family } from '../../../model/ip.ts';
import type { Protocol } from '../../../model/objects.ts';
import type { Element, ElementKey, FieldType, TableSet } from './table.ts';

/** nft's names of an address family, and of its addresses. */
export const NFT_FAMILY = { IPv4: 'ip', IPv6: 'ip6' } as const satisfies Record<Family, string>;
const ADDRESS = { IPv4: 'ipv4_addr', IPv6: 'ipv6_addr' } as const satisfies Record<Family, string>;

/** The fields of a set, as nft declares them. A drawn index has no type, so such keys are declared by what they come from. */
export type Declared =
  | { readonly type: readonly ('ipv4_addr' | 'ipv6_addr' | 'inet_proto' | 'inet_service')[] }
  | { readonly typeof: readonly TypeOf[] };
type TypeOf = `${'ip' | 'ip6'} daddr` | 'meta l4proto' | 'th dport' | `numgen random mod ${number}`;

interface SetDeclaration {
  readonly key: Declared;
  readonly data?: Declared | 'verdict';
}

export function declarationOf({ key, data }: TableSet, family: Family): SetDeclaration {
  const isDrawn = key.some((field) => typeof field === 'object');
  const declared = (fields: readonly FieldType[]): Declared =>
    isDrawn
      ? { typeof: fields.map((field) => typeOf(field, family)) }
      : {
          type: fields.map((field) =>
            field === 'address' ? ADDRESS[family] : field === 'protocol' ? 'inet_proto' : 'inet_service',
          ),
        };
  return {
    key: declared(key),
    ...(data && { data: data === 'endpoint' ? declared(['address', 'port']) : data }),
  };
}

function typeOf(field: FieldType, family: Family): TypeOf {
  if (typeof field === 'object') return `numgen random mod ${field.drawnOf}`;
  if (field === 'address') return `${NFT_FAMILY[family]} daddr`;
  return field === 'protocol' ? 'meta l4proto' : 'th dport';
}

export function printElement({ key, endpoint, chain, comment }: Element): string {
  const note = comment === undefined ? '' : ` comment "${comment}"`;
  const value = endpoint
    ? ` : ${endpoint.ip} . ${endpoint.port}`
    : chain === undefined
      ? ''
      : ` : jump ${chain}`;
  return `${printKey(key)}${note}${value}`;
}

/** `10.96.0.1 . tcp . 443 . 2`: what tells one element of a set from another. A start asks for hundreds of thousands. */
export function printKey(key: ElementKey): string {
  const { address, protocol, secondAddress, port, secondPort, index, range } = key;
  let text = '';
  if (address !== undefined) text = address;
  if (protocol !== undefined) text = joined(text, LOWER[protocol]);
  if (port !== undefined && secondPort !== undefined) text = joined(text, port);
  if (secondAddress !== undefined) text = joined(text, secondAddress);
  const lastPort = secondPort ?? port;
  if (lastPort !== undefined) text = joined(text, lastPort);
  if (index !== undefined) text = joined(text, index);
  if (range !== undefined) text = joined(text, hostless(range));
  return text;
}

const LOWER: Readonly<Record<Protocol, string>> = { TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' };

function joined(before: string, part: string | number): string {
  return before === '' ? `${part}` : `${before} . ${part}`;
}

/** `1h30m` */
export function duration(seconds: number): string {
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ] as const;
  return parts.map(([count, unit]) => (count === 0 ? '' : `${count}${unit}`)).join('');
}

function hostless(cidr: string): string {
  return cidr.replace(/^([^:]*)\/32$|^(.*:.*)\/128$/, '$1$2');
}
