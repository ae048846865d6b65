/**
 * Rules of iptables out of expressions of nf_tables, as `parseRule` makes them of the same line of `iptables-save`. What has
 * no word here becomes `other`, which says what it is and equals no rule of ours.
 */
import { type Cidr, parseCidr } from '../../../model/ip.ts';
import { MessageWriter } from '../../../netlink/codec.ts';
import { decodeIp } from '../../../netlink/inet.ts';
import { decodeText } from '../../../netlink/kinds.ts';
import { type Expression, writeExpression } from '../../../netlink/nftables/expressions.ts';
import type { Counters } from '../rules/parse.ts';
import type { Match, Rule, Target } from '../rules/rule.ts';
import {
  type DecodeContext,
  decodeMatch,
  decodeTarget,
  type TransportName,
  transportName,
} from './decodeXt.ts';
import { ADDRESS_OFFSETS, prefixMask, REGISTER } from './templates.ts';

interface DecodedRule {
  readonly rule: Rule;
  readonly counters: Counters | undefined;
}

export function decodeIptablesRule(expressions: readonly Expression[], context: DecodeContext): DecodedRule {
  return new RuleDecoder(context).decode(expressions);
}

type Of<K extends Expression['kind']> = Extract<Expression, { readonly kind: K }>;
type Load = Of<'payload' | 'meta'>;
type Mask = Of<'bitwise'>;

/** A load, perhaps a mask, and a comparison: as `iptables-nft` writes whatever it has no structure for. */
interface Comparison {
  readonly load: Load;
  readonly mask: Uint8Array | undefined;
  readonly not: boolean;
  readonly value: Uint8Array;
}

class RuleDecoder {
  readonly #context: DecodeContext;
  /** Addresses, then interfaces: a save prints them first. */
  readonly #header: (Match | undefined)[] = [];
  readonly #matches: Match[] = [];
  #protocol: TransportName | undefined;
  #isLoaded = false;
  #target: Target | undefined;
  #counters: Counters | undefined;

  constructor(context: DecodeContext) {
    this.#context = context;
  }

  decode(expressions: readonly Expression[]): DecodedRule {
    for (let at = 0; at < expressions.length; ) at += this.#take(expressions, at);
    const header = this.#header.filter((match) => match !== undefined);
    const matches = [...header, ...this.#matches];
    if (this.#protocol !== undefined && !this.#isLoaded)
      matches.splice(header.length, 0, { kind: 'protocol', protocol: this.#protocol, bare: true });
    return { rule: { matches, target: this.#target }, counters: this.#counters };
  }

  /** Returns how many it took. */
  #take(expressions: readonly Expression[], at: number): number {
    const [first, second, third] = expressions.slice(at, at + 3);
    if (!first) return 1;
    if (first.kind === 'payload' || first.kind === 'meta') {
      const masked = second?.kind === 'bitwise' && isMask(second) ? second : undefined;
      const compared = masked ? third : second;
      const taken = masked ? 3 : 2;
      if (compared?.kind === 'compare' && first.into === REGISTER && compared.from === REGISTER) {
        const { comparison, value } = compared;
        const isEquality = comparison === '==' || comparison === '!=';
        const not = comparison === '!=';
        if (isEquality && this.#compared({ load: first, mask: masked?.mask, not, value })) return taken;
        this.#unknown(...expressions.slice(at, at + taken));
        return taken;
      }
      // A name of any length: `-i +`, which a save does not print.
      const isAny = first.kind === 'meta' && (first.key === 'iifname' || first.key === 'oifname');
      if (!isAny) this.#unknown(first);
      return 1;
    }
    this.#single(first);
    return 1;
  }

  #single(expression: Expression): void {
    switch (expression.kind) {
      case 'counter':
        if (this.#counters || this.#target) this.#unknown(expression);
        else this.#counters = { packets: Number(expression.packets), bytes: Number(expression.bytes) };
        return;
      case 'xt match': {
        const matches = this.#target ? undefined : decodeMatch(expression, this.#context);
        if (!matches || !this.#matchesProtocol(matches)) this.#unknown(expression);
        else this.#matches.push(...matches);
        return;
      }
      case 'xt target': {
        const { name, info, revision } = expression;
        const other: Target = { kind: 'other', args: ['-j', name, `revision ${revision}`, hex(info)] };
        this.#end(decodeTarget(expression, this.#context.family) ?? other, expression);
        return;
      }
      case 'verdict': {
        const target = verdictTarget(expression);
        if (target) this.#end(target, expression);
        else this.#unknown(expression);
        return;
      }
      default:
        this.#unknown(expression);
    }
  }

  #end(target: Target, expression: Expression): void {
    if (this.#target) this.#unknown(expression);
    else this.#target = target;
  }

  /** `-m tcp` belongs to `-p tcp`, once. */
  #matchesProtocol(matches: readonly Match[]): boolean {
    const named = matches.find((match) => match.kind === 'protocol');
    if (!named) return true;
    if (this.#isLoaded || named.protocol !== this.#protocol) return false;
    this.#isLoaded = true;
    return true;
  }

  #unknown(...expressions: readonly Expression[]): void {
    for (const each of expressions) this.#matches.push({ kind: 'other', args: ['-m', ...shown(each)] });
  }

  #compared(comparison: Comparison): boolean {
    const { load } = comparison;
    if (this.#target) return false;
    if (load.kind === 'meta') return this.#comparedMeta(load.key, comparison);
    return load.base === 'network' ? this.#address(load, comparison) : this.#port(load, comparison);
  }

  #comparedMeta(key: Of<'meta'>['key'], { mask, not, value }: Comparison): boolean {
    switch (key) {
      case 'l4proto': {
        const protocol = mask || not || value.length !== 1 ? undefined : transportName(value[0] ?? 0);
        if (protocol === undefined || this.#protocol !== undefined || this.#matches.length > 0) return false;
        this.#protocol = protocol;
        return true;
      }
      case 'iifname':
        return !mask && this.#head(IN_INTERFACE, { kind: 'inInterface', name: interfaceName(value), not });
      case 'oifname': {
        const args = ['-o', interfaceName(value)];
        return !mask && this.#head(OUT_INTERFACE, { kind: 'other', args: not ? ['!', ...args] : args });
      }
      case 'mark':
        if (value.length !== 4 || (mask && mask.length !== 4)) return false;
        this.#matches.push({
          kind: 'mark',
          value: hostNumber(value),
          mask: mask ? hostNumber(mask) : 0xffff_ffff,
          not,
        });
        return true;
      default:
        return false;
    }
  }

  #head(place: number, match: Match): boolean {
    if (this.#header[place] || this.#matches.length > 0) return false;
    this.#header[place] = match;
    return true;
  }

  #address({ offset, bytes }: Of<'payload'>, { mask, not, value }: Comparison): boolean {
    const of = ADDRESS_OFFSETS[this.#context.family];
    const kind = offset === of.source ? 'source' : 'destination';
    if (of[kind] !== offset || value.length !== bytes || bytes > of.bytes || bytes === 0) return false;
    const prefix = mask ? maskPrefix(mask, of.bytes) : bytes * 8;
    if (prefix === undefined || (mask && bytes !== of.bytes)) return false;
    const address = new Uint8Array(of.bytes);
    address.set(value);
    const cidr = `${decodeIp(address)}/${prefix}`;
    // With other bits than the prefix has, it matches nothing.
    if (parseCidr(cidr) !== cidr) return false;
    return this.#head(kind === 'source' ? SOURCE : DESTINATION, { kind, cidr: cidr as Cidr, not });
  }

  #port({ base, offset, bytes }: Of<'payload'>, { mask, not, value }: Comparison): boolean {
    if (base !== 'transport' || offset !== 2 || bytes !== 2 || value.length !== 2 || mask || not)
      return false;
    const protocol = this.#protocol;
    if (protocol === undefined || protocol === 'sctp' || this.#isLoaded) return false;
    this.#isLoaded = true;
    const port = ((value[0] ?? 0) << 8) | (value[1] ?? 0);
    this.#matches.push({ kind: 'protocol', protocol }, { kind: 'destinationPort', port });
    return true;
  }
}

/** Places of the header, in the order of a save. */
const SOURCE = 0;
const DESTINATION = 1;
const IN_INTERFACE = 2;
const OUT_INTERFACE = 3;

function isMask({ from, into, xor }: Mask): boolean {
  return from === REGISTER && into === REGISTER && xor.every((byte) => byte === 0);
}

/** `undefined`: it is of other bits than the first. */
function maskPrefix(mask: Uint8Array, bytes: number): number | undefined {
  let prefix = 0;
  while (prefix < mask.length * 8 && ((mask[prefix >> 3] ?? 0) & (0x80 >> (prefix & 7))) !== 0) prefix++;
  return mask.length === bytes && hex(prefixMask(bytes, prefix)) === hex(mask) ? prefix : undefined;
}

/** The whole name ends in a zero byte; a prefix does not. */
function interfaceName(value: Uint8Array): string {
  const name = decodeText(value);
  return value.at(-1) === 0 ? name : `${name}+`;
}

function hostNumber(value: Uint8Array): number {
  return new Uint32Array(value.slice().buffer)[0] ?? 0;
}

function verdictTarget({ verdict, chain = '' }: Of<'verdict'>): Target | undefined {
  switch (verdict) {
    case 'accept':
    case 'drop':
    case 'return':
      return { kind: verdict };
    case 'jump':
      return { kind: 'jump', chain };
    case 'goto':
      return { kind: 'other', args: ['-g', chain] };
    default:
      return undefined;
  }
}

/** The expression's name, and what is in it. */
function shown(expression: Expression): readonly string[] {
  if (expression.kind === 'xt match' || expression.kind === 'xt target') {
    const { name, revision, info } = expression;
    return [name, `revision ${revision}`, hex(info)];
  }
  const writer = new MessageWriter();
  writeExpression(writer, expression);
  return ['nf_tables', expression.kind, hex(writer.finish())];
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex');
}
