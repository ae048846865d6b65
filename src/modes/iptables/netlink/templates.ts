/**
 * Expressions of nf_tables as bytes, made once, with one place for what varies from rule to rule.
 *
 * They are as the kernel shows them: nests without a flag, attributes in its order. So what is written and what is read
 * back are the same bytes, but for counters.
 */
import type { Family } from '../../../model/ip.ts';
import { align, MessageWriter } from '../../../netlink/codec.ts';
import { type Expression, expressionKind } from '../../../netlink/nftables/expressions.ts';
import type { XtStructure } from '../../../netlink/xtables.ts';

/** The one register that `iptables-nft` uses. */
export const REGISTER = 1;
const NFTA_LIST_ELEM = 1;

export interface Template {
  readonly bytes: Uint8Array;
  /** Where what varies begins: the value of the last attribute. */
  readonly at: number;
}

export function expressionBytes(...expressions: readonly Expression[]): Uint8Array {
  const writer = new MessageWriter(512, 0);
  for (const expression of expressions) expressionKind.write(writer, NFTA_LIST_ELEM, expression);
  return writer.finish().slice();
}

/** `varying`: of so many bytes, at the end. */
function template(varying: number, ...expressions: readonly Expression[]): Template {
  const bytes = expressionBytes(...expressions);
  return { bytes, at: bytes.length - align(varying) };
}

/** Made when it is first asked for. Keys are small numbers. */
export class Templates {
  readonly #made: (Template | undefined)[] = [];
  readonly #make: (key: number) => Template;

  constructor(make: (key: number) => Template) {
    this.#make = make;
  }

  get(key: number): Template {
    return (this.#made[key] ??= this.#make(key));
  }
}

export function comparison(value: Uint8Array, not = false): Expression {
  return { kind: 'compare', from: REGISTER, comparison: not ? '!=' : '==', value };
}

export function xtMatch({ name, revision }: XtStructure, info: Uint8Array): Expression {
  return { kind: 'xt match', name, revision, info };
}

export function xtTarget({ name, revision }: XtStructure, info: Uint8Array): Expression {
  return { kind: 'xt target', name, revision, info };
}

/** A match or target whose structure varies. */
export function structureTemplate(expression: Expression, bytes: number): Template {
  return template(bytes, expression);
}

/** The header that has it, and where. */
export const ADDRESS_OFFSETS = {
  IPv4: { source: 12, destination: 16, bytes: 4 },
  IPv6: { source: 8, destination: 24, bytes: 16 },
} as const;

/** In the header of a packet. */
export const IPV4_PROTOCOL_OFFSET = 9;

export type AddressSide = 'source' | 'destination';

/** By the length of the prefix. A prefix of whole bytes is compared with as many; of any other, the rest is masked out. */
export function addressTemplates(family: Family, side: AddressSide, not: boolean): Templates {
  const { [side]: offset, bytes } = ADDRESS_OFFSETS[family];
  return new Templates((prefix) => {
    const isWhole = prefix % 8 === 0;
    const length = isWhole ? prefix / 8 : bytes;
    const load = { kind: 'payload', into: REGISTER, base: 'network', offset, bytes: length } as const;
    const compared = comparison(new Uint8Array(length), not);
    if (isWhole) return template(length, load, compared);
    const masked: Expression = {
      kind: 'bitwise',
      from: REGISTER,
      into: REGISTER,
      mask: prefixMask(bytes, prefix),
      xor: new Uint8Array(bytes),
    };
    return template(length, load, masked, compared);
  });
}

export function prefixMask(bytes: number, prefix: number): Uint8Array {
  const mask = new Uint8Array(bytes);
  for (let bit = 0; bit < prefix; bit++) mask[bit >> 3] = (mask[bit >> 3] ?? 0) | (0x80 >> (bit & 7));
  return mask;
}

/** By how many bytes of a name are compared: with the closing zero, or of a prefix without it. */
export function interfaceTemplates(not: boolean): Templates {
  return new Templates((length) =>
    template(
      length,
      { kind: 'meta', key: 'iifname', into: REGISTER },
      comparison(new Uint8Array(length), not),
    ),
  );
}

export const DESTINATION_PORT = template(
  2,
  { kind: 'payload', into: REGISTER, base: 'transport', offset: 2, bytes: 2 },
  comparison(new Uint8Array(2)),
);

/** By the length of the chain's name. */
export const JUMPS = new Templates((length) =>
  template(length + 1, { kind: 'verdict', verdict: 'jump', chain: '-'.repeat(length) }),
);

/** Bytes first, then packets; each is eight bytes behind a header of four. */
export const COUNTER = template(20, { kind: 'counter', packets: 0n, bytes: 0n });
