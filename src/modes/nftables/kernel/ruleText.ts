/**
 * A rule of the kernel as nft prints it. Registers hold the names of what is loaded into them, and what compares or looks
 * up prints these. What has no words here is named in brackets.
 */
import type { Expression } from '../../../netlink/nftables/expressions.ts';
import { VERDICT_REGISTER, wordsOf } from '../../../netlink/nftables/expressions.ts';
import { duration } from '../rules/print.ts';
import { loadOf, wordOf } from './loads.ts';
import { hostNumber, printValue, printVerdict, type ValueType } from './values.ts';
import { printIptables } from './xtables.ts';

type ExpressionOf<Kind extends Expression['kind']> = Extract<Expression, { readonly kind: Kind }>;

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

/** What a part of the text has named. */
interface Named {
  readonly name: string;
  readonly part: number;
}

export function printExpressions(expressions: readonly Expression[]): string {
  return new RulePrinter().print(expressions);
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

  print(expressions: readonly Expression[]): string {
    for (const expression of expressions) this.#add(expression);
    const parts = this.#parts.filter((_, index) => !this.#implied.has(index));
    // `th` becomes the name of the protocol, where it is known.
    return parts.join(' ').replaceAll(/\bth (?=[sd]port\b)/g, `${this.#protocol?.name ?? 'th'} `);
  }

  #say(text: string): void {
    if (this.#protocol && /\bth [sd]port\b|\btcp flags\b/.test(text)) this.#implied.add(this.#protocol.part);
    if (this.#family && text.includes(`${this.#family.name} `)) this.#implied.add(this.#family.part);
    this.#parts.push(text);
  }

  #load(register: number, loaded: Loaded): void {
    this.#registers.set(wordOf(register) ?? -1, loaded);
  }

  #at(register: number): Loaded {
    const unknown = { text: `register ${register}`, type: 'bytes', words: 1 } as const;
    return this.#registers.get(wordOf(register) ?? -1) ?? unknown;
  }

  /** The names of all that was loaded from here on, side by side. They are forgotten: what follows loads its own. */
  #take(register: number): string {
    const texts: string[] = [];
    for (let word = wordOf(register) ?? -1; ; ) {
      const loaded = this.#registers.get(word);
      if (!loaded) return texts.join(' . ') || `register ${register}`;
      this.#registers.delete(word);
      texts.push(loaded.text);
      word += loaded.words;
    }
  }

  #add(expression: Expression): void {
    switch (expression.kind) {
      case 'payload':
      case 'meta':
      case 'ct':
      case 'fib':
        return this.#load(expression.into, loadOf(expression));
      case 'numgen': {
        const { generator, modulus, into } = expression;
        return this.#load(into, { text: `numgen ${generator} mod ${modulus}`, type: 'number', words: 1 });
      }
      case 'immediate': {
        const { value, into } = expression;
        const text = printValue('bytes', value);
        return this.#load(into, { text, type: 'bytes', words: wordsOf(value.length), value });
      }
      case 'bitwise': {
        const { from, mask, xor, into } = expression;
        const { text, type } = this.#at(from);
        return this.#load(into, { text, type, words: wordsOf(mask.length), mask, xor });
      }
      case 'byteorder':
        return;
      case 'compare':
        return this.#compare(expression);
      case 'range': {
        const { from, comparison, first, last } = expression;
        const { type } = this.#at(from);
        const range = `${printValue(type, first)}-${printValue(type, last)}`;
        return this.#say(`${this.#take(from)} ${not(comparison)}${range}`);
      }
      case 'lookup':
        return this.#lookUp(expression);
      case 'dynset': {
        const { operation, set, key, data, timeoutMs } = expression;
        const timeout = timeoutMs === undefined ? '' : ` timeout ${duration(Math.round(timeoutMs / 1000))}`;
        // Before the key, behind which it may begin.
        const value = data === undefined ? '' : ` : ${this.#take(data)}`;
        return this.#say(`${operation} @${set} { ${this.#take(key)}${timeout}${value} }`);
      }
      case 'set meta':
        return this.#say(`meta ${expression.key} set ${this.#assigned(expression.from)}`);
      case 'nat': {
        const { direction, family, address, port } = expression;
        this.#parts.push(`${direction} ${family} to ${this.#target(address, port)}`);
        return;
      }
      case 'masquerade':
        return this.#say(['masquerade', ...expression.flags].join(' '));
      case 'reject':
        return this.#say(printReject(expression));
      case 'verdict':
        return this.#say(printVerdict(expression));
      case 'counter':
        return this.#say(`counter packets ${expression.packets} bytes ${expression.bytes}`);
      case 'xt match':
      case 'xt target':
        return this.#say(printIptables(expression) ?? `xt match "${expression.name}"`);
      case 'other':
        return this.#say(
          /^(?:log|notrack)$/.test(expression.name) ? expression.name : `[${expression.name}]`,
        );
    }
  }

  #compare({ from, comparison, value }: ExpressionOf<'compare'>): void {
    const { text, type, mask } = this.#at(from);
    if (mask) return this.#say(printMasked(text, type, mask, comparison, value));
    const part = this.#parts.length;
    const isNetwork = type === 'address' && value.length < addressBytes(text);
    const printed = isNetwork ? wholeBytes(text, value) : printValue(type, value);
    if (text === 'meta l4proto' && comparison === '==') this.#protocol = { name: printed, part };
    if (text === 'meta nfproto' && comparison === '==')
      this.#family = { name: printed === 'ipv6' ? 'ip6' : 'ip', part };
    this.#say(`${text} ${not(comparison)}${printed}`);
  }

  #lookUp({ set, from, into, isInverted }: ExpressionOf<'lookup'>): void {
    const key = this.#take(from);
    if (into === undefined) this.#say(`${key} ${isInverted ? '!= ' : ''}@${set}`);
    else if (into === VERDICT_REGISTER) this.#say(`${key} vmap @${set}`);
    else this.#load(into, { text: `${key} map @${set}`, type: 'bytes', words: 1 });
  }

  /** An address and a port that come from a map have one name. */
  #target(address: number | undefined, port: number | undefined): string {
    const ip = address === undefined ? undefined : this.#at(address);
    const printed = ip?.value ? printValue('address', ip.value) : (ip?.text ?? '');
    const to = port === undefined ? undefined : this.#registers.get(wordOf(port) ?? -1);
    if (!to) return printed;
    const number = to.value ? printValue('port', to.value.subarray(0, 2)) : to.text;
    return printed.includes(':') ? `[${printed}]:${number}` : `${printed}:${number}`;
  }

  #assigned(register: number): string {
    const { text, type, mask, xor, value } = this.#at(register);
    if (value) return printValue('mark', value);
    if (!mask || !xor || mask.length !== 4) return text;
    const [kept, flipped] = [hostNumber(mask), hostNumber(xor)];
    if (~kept >>> 0 === flipped) return `${text} | ${printValue(type, xor)}`;
    if (kept === 0xffffffff) return `${text} ^ ${printValue(type, xor)}`;
    const masked = `${text} & ${printValue(type, mask)}`;
    return flipped === 0 ? masked : `${masked} ^ ${printValue(type, xor)}`;
  }
}

function not(comparison: string): string {
  return comparison === '==' ? '' : `${comparison} `;
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
  const bits = Array.from(mask, (byte) => byte.toString(2).padStart(8, '0')).join('');
  if (type === 'address' && /^1*0*$/.test(bits))
    return `${text} ${not(comparison)}${printValue(type, value)}/${bits.lastIndexOf('1') + 1}`;
  return `${text} & ${printValue(type, mask)} ${comparison} ${printValue(type, value)}`;
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

function printReject({ with: answer, code }: ExpressionOf<'reject'>): string {
  if (answer === 'tcp reset') return 'reject with tcp reset';
  if (answer === 'icmp' && (code === 3 || code === 4)) return 'reject';
  return answer === 'icmpx' && code === 1 ? 'reject' : `reject with ${answer} code ${code}`;
}
