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
import { portOptions, portRange, tcpFlags } from './decodePorts.ts';
import { ADDRESS_OFFSETS, IPV4_PROTOCOL_OFFSET, prefixMask, REGISTER } from './templates.ts';

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

/** What a load is compared with: as `iptables-nft` writes whatever it has no structure for. */
interface Comparison {
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
  /** `-m tcp` was there. */
  #isLoaded = false;
  /** Where its options end that are compared in a register. */
  #optionsEnd = -1;
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
    if (first?.kind === 'payload' || first?.kind === 'meta') {
      const mask = second?.kind === 'bitwise' && isMask(second) ? second.mask : undefined;
      const compared = mask ? third : second;
      const taken = mask ? 3 : 2;
      if (first.into === REGISTER && this.#compared(first, mask, compared)) return taken;
      // A name of any length: `-i +`, which a save does not print.
      const isAny = first.kind === 'meta' && (first.key === 'iifname' || first.key === 'oifname');
      if (!isAny || mask || compared?.kind === 'compare') this.#unknown(first);
      return 1;
    }
    if (first) this.#single(first);
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

  #compared(load: Load, mask: Uint8Array | undefined, compared: Expression | undefined): boolean {
    if (this.#target || !compared || !('from' in compared) || compared.from !== REGISTER) return false;
    if (load.kind === 'payload' && load.base === 'transport') return this.#transport(load, mask, compared);
    if (compared.kind !== 'compare') return false;
    const { comparison, value } = compared;
    if (comparison !== '==' && comparison !== '!=') return false;
    const is = { mask, value, not: comparison === '!=' };
    if (load.kind === 'meta') return this.#comparedMeta(load.key, is);
    if (load.base !== 'network') return false;
    const isProtocol = load.offset === IPV4_PROTOCOL_OFFSET && load.bytes === 1;
    if (isProtocol && this.#context.family === 'IPv4') return this.#protocolIs(is);
    return this.#address(load, is);
  }

  #comparedMeta(key: Of<'meta'>['key'], { mask, not, value }: Comparison): boolean {
    switch (key) {
      case 'l4proto':
        return this.#protocolIs({ mask, not, value });
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

  #protocolIs({ mask, not, value }: Comparison): boolean {
    const [number] = value;
    if (mask || number === undefined || value.length > 1 || this.#protocol !== undefined) return false;
    const protocol = not ? undefined : transportName(number);
    if (protocol === undefined) {
      const args = ['-p', PROTOCOL_NAMES.get(number) ?? String(number)];
      return this.#head(PROTOCOL, { kind: 'other', args: not ? ['!', ...args] : args });
    }
    if (this.#matches.length > 0) return false;
    this.#protocol = protocol;
    return true;
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

  /** Options of `-m tcp` and `-m udp` stand together. */
  #transport(load: Of<'payload'>, mask: Uint8Array | undefined, compared: Expression): boolean {
    const protocol = this.#protocol;
    if (protocol === undefined || protocol === 'sctp') return false;
    if (this.#isLoaded && this.#optionsEnd !== this.#matches.length) return false;
    const options = optionsOf(protocol, load, mask, compared);
    if (!options) return false;
    if (!this.#isLoaded) this.#matches.push({ kind: 'protocol', protocol });
    this.#isLoaded = true;
    this.#matches.push(...options);
    this.#optionsEnd = this.#matches.length;
    return true;
  }
}

function optionsOf(
  protocol: TransportName,
  load: Of<'payload'>,
  mask: Uint8Array | undefined,
  compared: Expression,
): readonly Match[] | undefined {
  if (compared.kind === 'range') return mask ? undefined : portRange(load, compared);
  if (compared.kind !== 'compare') return undefined;
  return mask ? tcpFlags(protocol, load, mask, compared) : portOptions(load, compared);
}

/** Places of the header, in the order of a save. */
const SOURCE = 0;
const DESTINATION = 1;
const IN_INTERFACE = 2;
const OUT_INTERFACE = 3;
const PROTOCOL = 4;

/** Those without ports; others are printed as numbers. */
const PROTOCOL_NAMES: ReadonlyMap<number, string> = new Map([
  [1, 'icmp'],
  [2, 'igmp'],
  [6, 'tcp'],
  [17, 'udp'],
  [47, 'gre'],
  [50, 'esp'],
  [51, 'ah'],
  [58, 'ipv6-icmp'],
  [132, 'sctp'],
  [136, 'udplite'],
]);

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
