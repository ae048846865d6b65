/**
 * A rule of the kernel as nft prints it. Registers hold the names of what is loaded into them, and what compares or looks
 * up prints these. Our own rules come out as `printNftRule` prints them; what has no words here is named in brackets.
 */
import type { Expression } from '../../../netlink/nftables/expressions.ts';
import { VERDICT_REGISTER, wordsOf } from '../../../netlink/nftables/expressions.ts';
import { duration } from '../rules/print.ts';
import { wordOf } from './registers.ts';
import { printIptables } from './xtables.ts';
import { hostNumber, printValue, printVerdict, type ValueType } from './values.ts';

/** What a register was loaded with. */
interface Loaded {
  readonly text: string;
  readonly type: ValueType;
  readonly words: number;
  /** Of a bitwise operation. */
  readonly mask?: Uint8Array;
  readonly xor?: Uint8Array;
  /** Of an immediate. */
  readonly value?: Uint8Array;
}

export function printExpressions(expressions: readonly Expression[]): string {
  return new RulePrinter().print(expressions);
}

/** `th` becomes the name of the protocol, where it is known. */
const PORT = 'th dport';

/** What a part of the text has named. */
interface Named {
  readonly name: string;
  readonly part: number;
}

class RulePrinter {
  readonly #registers = new Map<number, Loaded>();
  readonly #parts: string[] = [];
  /** `meta l4proto tcp`, which is taken as said once a port is named. */
  #protocol: Named | undefined;
  /** `meta nfproto ipv4`, once an address is named. */
  #family: Named | undefined;
  /** Parts that are taken as said. */
  readonly #implied = new Set<number>();
  /** The lower end of a range, whose upper end may follow. */
  #lowerEnd: { readonly text: string; readonly part: number } | undefined;

  print(expressions: readonly Expression[]): string {
    for (const expression of expressions) this.#add(expression);
    const parts = this.#parts.filter((_, index) => !this.#implied.has(index));
    return parts.join(' ').replaceAll(/\bth (?=[sd]port\b)/g, `${this.#protocol?.name ?? 'th'} `);
  }

  #say(text: string): void {
    if (this.#protocol && /\bth [sd]port\b|\btcp flags\b/.test(text)) this.#implied.add(this.#protocol.part);
    if (this.#family && text.includes(`${this.#family.name} `)) this.#implied.add(this.#family.part);
    this.#parts.push(text);
  }

  #load(register: number, loaded: Loaded): void {
    const word = wordOf(register);
    if (word !== undefined) this.#registers.set(word, loaded);
  }

  #at(register: number): Loaded | undefined {
    const word = wordOf(register);
    return word === undefined ? undefined : this.#registers.get(word);
  }

  /** The names of all that was loaded from here on, side by side. They are forgotten: what follows loads its own. */
  #take(register: number): string {
    const texts: string[] = [];
    for (let word = wordOf(register); word !== undefined; ) {
      const loaded = this.#registers.get(word);
      if (!loaded) break;
      this.#registers.delete(word);
      texts.push(loaded.text);
      word += loaded.words;
    }
    return texts.join(' . ') || `register ${register}`;
  }

  #add(expression: Expression): void {
    switch (expression.kind) {
      case 'payload':
      case 'meta':
      case 'ct':
      case 'fib':
      case 'numgen':
      case 'immediate':
        this.#load(expression.into, loadedBy(expression));
        return;
      case 'bitwise': {
        const from = this.#at(expression.from);
        const { mask, xor, into } = expression;
        const text = from?.text ?? `register ${expression.from}`;
        this.#load(into, { text, type: from?.type ?? 'bytes', words: wordsOf(mask.length), mask, xor });
        return;
      }
      case 'byteorder':
        return;
      case 'compare':
        this.#compare(expression);
        return;
      case 'range': {
        const loaded = this.#at(expression.from);
        const { comparison, first, last } = expression;
        const type = loaded?.type ?? 'bytes';
        this.#say(
          `${this.#take(expression.from)} ${not(comparison)}${printValue(type, first)}-${printValue(type, last)}`,
        );
        return;
      }
      case 'lookup':
        this.#lookUp(expression);
        return;
      case 'dynset': {
        const { operation, set, key, data, timeoutMs } = expression;
        const timeout = timeoutMs === undefined ? '' : ` timeout ${duration(Math.round(timeoutMs / 1000))}`;
        // Before the key, behind which it may begin.
        const value = data === undefined ? '' : ` : ${this.#take(data)}`;
        const text = this.#take(key);
        this.#say(`${operation} @${set} { ${text}${timeout}${value} }`);
        return;
      }
      case 'set meta':
        this.#say(`meta ${expression.key} set ${this.#assigned(expression.from)}`);
        return;
      case 'nat': {
        const { direction, family, address, port } = expression;
        this.#parts.push(`${direction} ${family} to ${this.#target(address, port)}`);
        return;
      }
      case 'masquerade':
        this.#say(['masquerade', ...expression.flags].join(' '));
        return;
      case 'reject':
        this.#say(printReject(expression));
        return;
      case 'verdict':
        this.#say(printVerdict(expression));
        return;
      case 'counter':
        this.#say(`counter packets ${expression.packets} bytes ${expression.bytes}`);
        return;
      case 'xt match':
      case 'xt target':
        this.#say(printIptables(expression) ?? `xt match "${expression.name}"`);
        return;
      case 'other':
        this.#say(/^(?:log|notrack)$/.test(expression.name) ? expression.name : `[${expression.name}]`);
    }
  }

  #compare({ from, comparison, value }: Extract<Expression, { kind: 'compare' }>): void {
    const { text, type, mask } = this.#at(from) ?? { text: `register ${from}`, type: 'bytes' as const };
    if (mask) {
      this.#say(printMasked(text, type, mask, comparison, value));
      return;
    }
    const part = this.#parts.length;
    const isNetwork = type === 'address' && value.length < addressBytes(text);
    const printed = isNetwork ? wholeBytes(text, value) : printValue(type, value);
    if (text === 'meta l4proto' && comparison === '==') this.#protocol = { name: printed, part };
    if (text === 'meta nfproto' && comparison === '==')
      this.#family = { name: printed === 'ipv6' ? 'ip6' : 'ip', part };
    if (comparison === '<=' && this.#lowerEnd?.text === text && this.#lowerEnd.part === part - 1) {
      this.#parts[part - 1] = `${this.#parts[part - 1]?.replace('>= ', '') ?? ''}-${printed}`;
      return;
    }
    if (comparison === '>=') this.#lowerEnd = { text, part };
    this.#say(`${text} ${comparison === '==' ? '' : `${comparison} `}${printed}`);
  }

  #lookUp({ set, from, into, isInverted }: Extract<Expression, { kind: 'lookup' }>): void {
    const key = this.#take(from);
    if (into === undefined) this.#say(`${key} ${isInverted ? '!= ' : ''}@${set}`);
    else if (into === VERDICT_REGISTER) this.#say(`${key} vmap @${set}`);
    else this.#load(into, { text: `${key} map @${set}`, type: 'bytes', words: 1 });
  }

  /** An address and a port that come from a map have one name. */
  #target(address: number | undefined, port: number | undefined): string {
    const [ip, to] = [address, port].map((each) => (each === undefined ? undefined : this.#at(each)));
    const printed = ip?.value ? printValue('address', ip.value) : (ip?.text ?? '');
    if (!to) return printed;
    const number = to.value ? printValue('port', to.value.subarray(0, 2)) : to.text;
    return printed.includes(':') ? `[${printed}]:${number}` : `${printed}:${number}`;
  }

  #assigned(register: number): string {
    const loaded = this.#at(register);
    if (!loaded) return `register ${register}`;
    const { text, type, mask, xor, value } = loaded;
    if (value) return printValue('mark', value);
    if (!mask || !xor || mask.length !== 4) return text;
    const [kept, flipped] = [hostNumber(mask), hostNumber(xor)];
    if (~kept >>> 0 === flipped) return `${text} | ${printValue(type, xor)}`;
    if (kept === 0xffffffff) return `${text} ^ ${printValue(type, xor)}`;
    const masked = `${text} & ${printValue(type, mask)}`;
    return flipped === 0 ? masked : `${masked} ^ ${printValue(type, xor)}`;
  }
}

function not(comparison: '==' | '!='): string {
  return comparison === '!=' ? '!= ' : '';
}

type Load = Extract<
  Expression,
  { readonly kind: 'payload' | 'meta' | 'ct' | 'fib' | 'numgen' | 'immediate' }
>;

function loadedBy(expression: Load): Loaded {
  switch (expression.kind) {
    case 'payload':
      return payloadName(expression);
    case 'meta':
      return metaName(expression.key);
    case 'ct': {
      const { key, direction } = expression;
      const text = ['ct', ...(direction ? [direction] : []), key].join(' ');
      const types: Readonly<Record<string, ValueType>> = { state: 'state', status: 'status', mark: 'mark' };
      if (key.startsWith('ip')) return { text, type: 'address', words: key.startsWith('ip6') ? 4 : 1 };
      return { text, type: types[key] ?? (key.startsWith('proto-') ? 'port' : 'bytes'), words: 1 };
    }
    case 'fib': {
      const { of, result } = expression;
      return {
        text: `fib ${of.join(' . ')} ${result}`,
        type: result === 'type' ? 'address type' : 'bytes',
        words: 1,
      };
    }
    case 'numgen':
      return { text: `numgen ${expression.generator} mod ${expression.modulus}`, type: 'number', words: 1 };
    case 'immediate': {
      const { value } = expression;
      return {
        text: `0x${Buffer.from(value).toString('hex')}`,
        type: 'bytes',
        words: wordsOf(value.length),
        value,
      };
    }
  }
}

/** By where it begins, and what may be loaded from there: an address, or the first bytes of one. */
const NETWORK: Readonly<Record<number, readonly [text: string, most: number]>> = {
  12: ['ip saddr', 4],
  16: ['ip daddr', 4],
  8: ['ip6 saddr', 16],
  24: ['ip6 daddr', 16],
};

function payloadName({ base, offset, bytes }: Extract<Expression, { kind: 'payload' }>): Loaded {
  const words = wordsOf(bytes);
  const [text, most] = (base === 'network' && NETWORK[offset]) || ['', 0];
  if (bytes <= most && (bytes > 1 || most === 4 || offset === 24)) return { text, type: 'address', words };
  if (base === 'network' && offset === 9 && bytes === 1)
    return { text: 'ip protocol', type: 'protocol', words };
  if (base === 'network' && offset === 6 && bytes === 1)
    return { text: 'ip6 nexthdr', type: 'protocol', words };
  if (base === 'transport' && bytes === 2 && offset <= 2)
    return { text: offset === 0 ? 'th sport' : PORT, type: 'port', words };
  if (base === 'transport' && offset === 13 && bytes === 1)
    return { text: 'tcp flags', type: 'bytes', words };
  const short = { link: 'll', network: 'nh', transport: 'th' }[base];
  return { text: `@${short},${offset * 8},${bytes * 8}`, type: 'bytes', words };
}

function metaName(key: string): Loaded {
  const types: Readonly<Record<string, ValueType>> = {
    mark: 'mark',
    iifname: 'interface',
    oifname: 'interface',
    l4proto: 'protocol',
    nfproto: 'family',
    iif: 'number',
    oif: 'number',
  };
  const text = /^[io]if/.test(key) ? key : `meta ${key}`;
  return { text, type: types[key] ?? 'bytes', words: key.endsWith('ifname') ? 4 : 1 };
}

/** `ct state new`, `ip saddr 10.0.0.0/9`, `meta mark & 0x00004000 != 0x00000000` */
function printMasked(
  text: string,
  type: ValueType,
  mask: Uint8Array,
  comparison: string,
  value: Uint8Array,
): string {
  const isZero = value.every((byte) => byte === 0);
  if ((type === 'state' || type === 'status') && isZero)
    return `${text} ${comparison === '!=' ? '' : '! '}${printValue(type, mask)}`;
  const prefix = type === 'address' ? prefixLength(mask) : undefined;
  if (prefix !== undefined) {
    const network = `${printValue(type, value)}/${prefix}`;
    return `${text} ${comparison === '==' ? '' : `${comparison} `}${network}`;
  }
  return `${text} & ${printValue(type, mask)} ${comparison} ${printValue(type, value)}`;
}

function prefixLength(mask: Uint8Array): number | undefined {
  const bits = Array.from(mask, (byte) => byte.toString(2).padStart(8, '0')).join('');
  return /^1*0*$/.test(bits) ? bits.lastIndexOf('1') + 1 : undefined;
}

function addressBytes(text: string): number {
  return /\bip6 /.test(text) ? 16 : 4;
}

/** A network that ends at a byte's border, compared by its bytes alone. */
function wholeBytes(text: string, value: Uint8Array): string {
  const bytes = new Uint8Array(addressBytes(text));
  bytes.set(value);
  return `${printValue('address', bytes)}/${value.length * 8}`;
}

function printReject({ with: answer, code }: Extract<Expression, { kind: 'reject' }>): string {
  if (answer === 'tcp reset') return 'reject with tcp reset';
  if (answer === 'icmp' && (code === 3 || code === 4)) return 'reject';
  return answer === 'icmpx' && code === 1 ? 'reject' : `reject with ${answer} code ${code}`;
}
