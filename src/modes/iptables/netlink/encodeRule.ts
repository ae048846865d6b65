/**
 * Rules of iptables as expressions of nf_tables, as `iptables-nft-restore` writes them: interface, protocol and addresses, then
 * the matches in their order, a counter, and the target.
 *
 * A cold start encodes 150,000 rules, hence bytes copied from templates.
 */
import { type Cidr, type Family, type Ip, parseIp } from '../../../model/ip.ts';
import { ByteBuffer, LITTLE_ENDIAN } from '../../../netlink/codec.ts';
import { writeIp } from '../../../netlink/inet.ts';
import type { RuleDigest, RuleDigester } from '../../../netlink/nftables/ruleDigest.ts';
import {
  NF_NAT_RANGE_MAP_IPS,
  NF_NAT_RANGE_PROTO_SPECIFIED,
  RECENT_CHECK,
  RECENT_REAP,
  RECENT_SET,
} from '../../../netlink/xtables.ts';
import type { Counters } from '../rules/parse.ts';
import { isPlainComment, probabilityBits } from '../rules/print.ts';
import type { Match, Rule, Target } from '../rules/rule.ts';
import { DIALECTS, type IptablesDialect } from './dialect.ts';
import {
  matchExpressions,
  type PlainMatch,
  type PlainTarget,
  type SetIndex,
  targetExpression,
} from './expressionOf.ts';
import {
  COMMENT,
  COMPAT,
  DNAT,
  IPV4_HEADER_CHECKS,
  MODULES,
  type OfProtocol,
  PORT_STRUCTURES,
  PORTS_AT,
  PROTOCOL_CHECKS,
  RECENT,
  type RuleCompat,
  type RuleProtocol,
  STATISTIC,
} from './parts.ts';
import {
  ADDRESS_OFFSETS,
  type AddressSide,
  addressTemplates,
  COUNTER,
  DESTINATION_PORT,
  expressionBytes,
  interfaceTemplates,
  JUMPS,
  type Template,
  type Templates,
} from './templates.ts';

interface EncodeContext {
  readonly family: Family;
  /** Rules that match a set can be encoded with this only. */
  readonly setIndex?: SetIndex;
  /** Of the iptables that other programs use here. */
  readonly dialect?: IptablesDialect;
}

interface EncodedRule {
  /** What is inside of NFTA_RULE_EXPRESSIONS: the list, as the kernel shows it. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly compat: RuleCompat | undefined;
}

type Address = Extract<Match, { readonly kind: 'source' | 'destination' }>;
type Recent = Extract<Match, { readonly kind: 'recentSet' | 'recentCheck' }>;

/** `NFT_NAME_MAXLEN` is longer; iptables takes no longer ones: XT_EXTENSION_MAXNAMELEN, less the closing zero byte. */
const CHAIN_LENGTH = 28;
/** IFNAMSIZ, less the closing zero byte. */
const INTERFACE_LENGTH = 15;
/** In a shorter name, iptables leaves the end of its default name behind: `DEFAULT`. */
const SHORTEST_RECENT_NAME = 7;
const LONGEST_RECENT_NAME = 199;
const HIGH = 2 ** 32;

/** Of one family and table. */
export class RuleEncoder extends ByteBuffer {
  readonly #family: Family;
  readonly #setIndex: SetIndex;
  readonly #dialect: IptablesDialect;
  readonly #protocols: OfProtocol;
  readonly #source: readonly [is: Templates, isNot: Templates];
  readonly #destination: readonly [is: Templates, isNot: Templates];
  readonly #interface = [interfaceTemplates(false), interfaceTemplates(true)] as const;
  /** Most of these are constants of the layouts. */
  readonly #known = new WeakMap<PlainMatch | PlainTarget, Uint8Array>();
  /** Of the rule that was written last. */
  #protocol: RuleProtocol | undefined;

  constructor({ family, setIndex = () => undefined, dialect = DIALECTS['1.8.9'] }: EncodeContext) {
    super(4096);
    this.#family = family;
    this.#setIndex = setIndex;
    this.#dialect = dialect;
    this.#protocols = family === 'IPv4' && dialect.addressesFirst ? IPV4_HEADER_CHECKS : PROTOCOL_CHECKS;
    const both = (side: AddressSide): readonly [Templates, Templates] => [
      addressTemplates(family, side, false),
      addressTemplates(family, side, true),
    ];
    this.#source = both('source');
    this.#destination = both('destination');
  }

  /** For rules that another version of iptables wrote. */
  inOtherDialects(): readonly RuleEncoder[] {
    return Object.values(DIALECTS)
      .filter((dialect) => dialect !== this.#dialect)
      .map((dialect) => new RuleEncoder({ family: this.#family, setIndex: this.#setIndex, dialect }));
  }

  /** `undefined`: it has something that is written by `iptables-restore` alone. The bytes are good until the next call. */
  encode(rule: Rule, counters?: Counters): EncodedRule | undefined {
    if (!this.#write(rule, counters)) return undefined;
    const compat = this.#protocol === undefined ? undefined : COMPAT[this.#protocol];
    return { bytes: this.bytes.subarray(0, this.used), compat };
  }

  /** The digest of what it would be. */
  digest(rule: Rule, digester: RuleDigester): RuleDigest | undefined {
    return this.#write(rule, undefined) ? digester.digestAt(this.view, 0, this.used) : undefined;
  }

  #write(rule: Rule, counters: Counters | undefined): boolean {
    this.used = 0;
    const { matches, target } = rule;
    let protocol: RuleProtocol | undefined;
    let port = -1;
    let source: Address | undefined;
    let destination: Address | undefined;
    let inInterface: Extract<Match, { readonly kind: 'inInterface' }> | undefined;
    for (const match of matches)
      switch (match.kind) {
        case 'source':
          if (source) return false;
          source = match;
          break;
        case 'destination':
          if (destination) return false;
          destination = match;
          break;
        case 'inInterface':
          if (inInterface) return false;
          inInterface = match;
          break;
        case 'protocol':
          if (protocol !== undefined) return false;
          ({ protocol } = match);
          break;
        case 'destinationPort':
          if (port >= 0) return false;
          ({ port } = match);
          break;
        default:
      }
    if (port >= 0 && protocol === undefined) return false;
    const { addressesFirst } = this.#dialect;
    if (addressesFirst && !this.#takeAddresses(source, destination)) return false;
    if (inInterface && !this.#takeInterface(inInterface.name, inInterface.not)) return false;
    if (protocol !== undefined) this.#copy(this.#protocols[protocol]);
    if (!addressesFirst && !this.#takeAddresses(source, destination)) return false;
    for (const match of matches) if (!this.#takeMatch(match, port)) return false;
    this.#takeCounter(counters);
    if (target && !this.#takeTarget(target)) return false;
    this.#protocol = protocol;
    return true;
  }

  #copy(bytes: Uint8Array): number {
    const start = this.reserve(bytes.length);
    this.bytes.set(bytes, start);
    return start;
  }

  /** Returns where what varies begins. */
  #begin({ bytes, at }: Template): number {
    return this.#copy(bytes) + at;
  }

  #takeInterface(name: string, not: boolean): boolean {
    const isPrefix = name.endsWith('+');
    const length = isPrefix ? name.length - 1 : name.length;
    // A prefix of nothing is any interface, or none.
    if (length === 0 || name.length > INTERFACE_LENGTH) return false;
    const start = this.#begin(this.#interface[not ? 1 : 0].get(isPrefix ? length : length + 1));
    return this.#takeText(name, start, length);
  }

  #takeAddresses(source: Address | undefined, destination: Address | undefined): boolean {
    if (source && !this.#takeAddress(this.#source, source.cidr, source.not)) return false;
    return !destination || this.#takeAddress(this.#destination, destination.cidr, destination.not);
  }

  #takeAddress([is, isNot]: readonly [Templates, Templates], cidr: Cidr | Ip, not: boolean): boolean {
    const { bytes } = ADDRESS_OFFSETS[this.#family];
    const slash = cidr.indexOf('/');
    const prefix = slash < 0 ? bytes * 8 : Number(cidr.slice(slash + 1));
    // All addresses: nothing is compared. None of them: iptables would write what the kernel refuses.
    if (prefix === 0) return !not;
    if (cidr.includes(':') !== bytes > 4) return false;
    const start = this.#begin((not ? isNot : is).get(prefix));
    if (prefix === bytes * 8) {
      writeIp((slash < 0 ? cidr : cidr.slice(0, slash)) as Ip, this.bytes, start);
      return true;
    }
    const address = new Uint8Array(bytes);
    writeIp(cidr.slice(0, slash) as Ip, address, 0);
    this.bytes.set(prefix % 8 === 0 ? address.subarray(0, prefix / 8) : address, start);
    return true;
  }

  #takeMatch(match: Match, port: number): boolean {
    switch (match.kind) {
      case 'source':
      case 'destination':
      case 'inInterface':
      case 'destinationPort':
        return true;
      case 'comment':
        if (!isPlainComment(match.text)) return false;
        return this.#takeText(match.text, this.#begin(COMMENT));
      case 'protocol':
        return match.bare === true ? port < 0 : this.#takeProtocol(match.protocol, port);
      case 'statistic':
        return this.#takeStatistic(probabilityBits(match.probability));
      case 'recentSet':
      case 'recentCheck':
        return this.#takeRecent(match);
      case 'other':
        return false;
      default:
        return this.#takeKnown(match, () => matchExpressions(match, this.#setIndex, this.#dialect));
    }
  }

  #takeProtocol(protocol: RuleProtocol, port: number): boolean {
    if (port < 0) this.#copy(MODULES[protocol]);
    else if (protocol === 'sctp' || !this.#dialect.comparesNatively) {
      const start = this.#begin(PORT_STRUCTURES[protocol]) + PORTS_AT[protocol];
      this.view.setUint16(start, port, LITTLE_ENDIAN);
      this.view.setUint16(start + 2, port, LITTLE_ENDIAN);
    } else {
      const start = this.#begin(DESTINATION_PORT);
      this.view.setUint16(start, port);
    }
    return true;
  }

  #takeStatistic(bits: number): boolean {
    if (!(bits >= 0 && bits <= 2 ** 31)) return false;
    const start = this.#begin(STATISTIC);
    this.view.setUint32(start + 4, bits, LITTLE_ENDIAN);
    this.view.setUint32(start + 12, bits, LITTLE_ENDIAN);
    return true;
  }

  #takeRecent(match: Recent): boolean {
    if (match.name.length < SHORTEST_RECENT_NAME || match.name.length > LONGEST_RECENT_NAME) return false;
    const start = this.#begin(RECENT);
    if (match.kind === 'recentSet') this.bytes[start + 8] = RECENT_SET;
    else {
      if (match.seconds >= HIGH) return false;
      this.view.setUint32(start, match.seconds, LITTLE_ENDIAN);
      this.bytes[start + 8] = match.reap ? RECENT_CHECK | RECENT_REAP : RECENT_CHECK;
    }
    return this.#takeText(match.name, start + 10);
  }

  #takeCounter(counters: Counters | undefined): void {
    const start = this.#begin(COUNTER);
    if (!counters) return;
    this.#setU64(start, counters.bytes);
    this.#setU64(start + 12, counters.packets);
  }

  #setU64(at: number, value: number): void {
    this.view.setUint32(at, Math.floor(value / HIGH));
    this.view.setUint32(at + 4, value % HIGH);
  }

  #takeTarget(target: Target): boolean {
    switch (target.kind) {
      case 'jump': {
        const { chain } = target;
        if (chain.length > CHAIN_LENGTH || chain === '') return false;
        return this.#takeText(chain, this.#begin(JUMPS.get(chain.length)));
      }
      case 'dnat':
        return this.#takeDnat(target.to);
      case 'other':
        return false;
      default:
        return this.#takeKnown(target, () => [targetExpression(target, this.#family)]);
    }
  }

  /** `10.244.1.9:53`, `[fd00:244::9]:53`, and the same without a port. */
  #takeDnat(to: string): boolean {
    const isBracketed = to.startsWith('[');
    const end = isBracketed ? to.indexOf(']') : to.lastIndexOf(':');
    const hasPort = isBracketed ? end < to.length - 1 : this.#family === 'IPv4' && end >= 0;
    const address = isBracketed ? to.slice(1, end) : hasPort ? to.slice(0, end) : to;
    const ip = parseIp(address);
    if (ip === undefined || ip.includes(':') !== (this.#family === 'IPv6')) return false;
    const start = this.#begin(DNAT);
    this.view.setUint32(start, NF_NAT_RANGE_MAP_IPS, LITTLE_ENDIAN);
    writeIp(ip, this.bytes, start + 4);
    this.bytes.copyWithin(start + 20, start + 4, start + 20);
    if (!hasPort) return true;
    const port = isBracketed ? to.slice(end + 2) : to.slice(end + 1);
    if ((isBracketed && to[end + 1] !== ':') || !/^\d{1,5}$/.test(port)) return false;
    this.view.setUint32(start, NF_NAT_RANGE_MAP_IPS | NF_NAT_RANGE_PROTO_SPECIFIED, LITTLE_ENDIAN);
    this.view.setUint16(start + 36, Number(port));
    this.view.setUint16(start + 38, Number(port));
    return true;
  }

  #takeKnown(part: PlainMatch | PlainTarget, make: () => ReturnType<typeof matchExpressions>): boolean {
    let bytes = this.#known.get(part);
    if (!bytes) {
      const expressions = make();
      if (!expressions) return false;
      bytes = expressionBytes(...expressions);
      // A set that is made again has another number.
      if (part.kind !== 'set') this.#known.set(part, bytes);
    }
    this.#copy(bytes);
    return true;
  }

  /** Printable ASCII alone. */
  #takeText(text: string, start: number, length = text.length): boolean {
    for (let index = 0; index < length; index++) {
      const code = text.charCodeAt(index);
      if (code <= 0x1f || code > 0x7e) return false;
      this.bytes[start + index] = code;
    }
    return true;
  }
}
