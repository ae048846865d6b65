/** From our words to the kernel's expressions, as nft itself would have written them. */
import { NFT_SETS } from './rules/names.ts';
import type { Key, KeyPart, RuleSpec, Statement } from './rules/rule.ts';
import { type Cidr, type Family, prefixOf } from '../../model/ip.ts';
import type { Protocol } from '../../model/objects.ts';
import { protocolByte, rangeOf } from '../../netlink/inet.ts';
import {
  CT_STATUS_DNAT,
  type Expression,
  FIB_TYPE_LOCAL,
  registerAt,
  VERDICT_REGISTER,
  wordsOf,
} from '../../netlink/nftables/expressions.ts';

interface FamilyFacts {
  readonly name: 'ip' | 'ip6';
  readonly bytes: number;
  readonly source: number;
  readonly destination: number;
  /** ICMP code of "port unreachable". */
  readonly portUnreachable: number;
}

const FACTS: Readonly<Record<Family, FamilyFacts>> = {
  IPv4: { name: 'ip', bytes: 4, source: 12, destination: 16, portUnreachable: 3 },
  IPv6: { name: 'ip6', bytes: 16, source: 8, destination: 24, portUnreachable: 4 },
};

const FIRST = registerAt(0);
const INTERFACE_NAME_BYTES = 16;
const REGISTER_WORDS = 16;

/** The set of concatenated ranges, for which nft turns the bytes of a protocol. */
const RANGES = NFT_SETS.allowed;

export function lowerRule({ statements }: RuleSpec, family: Family): readonly Expression[] {
  const lowering = new Lowering(FACTS[family]);
  return statements.flatMap((statement) => lowering.statement(statement));
}

class Lowering {
  readonly #facts: FamilyFacts;

  constructor(facts: FamilyFacts) {
    this.#facts = facts;
  }

  statement(statement: Statement): readonly Expression[] {
    switch (statement.kind) {
      case 'inSet': {
        const { key, set, not } = statement;
        const lookup: Expression = { kind: 'lookup', set, from: FIRST, ...(not && { isInverted: true }) };
        return [...this.#key(key, set === RANGES), lookup];
      }
      case 'dnatByMap':
        return [...this.#key(statement.key), ...this.#dnat(statement.map)];
      case 'verdictByMap':
        return [
          ...this.#key(statement.key),
          { kind: 'lookup', set: statement.map, from: FIRST, into: VERDICT_REGISTER },
        ];
      case 'addressType': {
        const of = statement.side === 'source' ? 'saddr' : 'daddr';
        return [
          { kind: 'fib', of: [of], result: 'type', into: FIRST },
          compare(statement.not, hostU32(FIB_TYPE_LOCAL)),
        ];
      }
      case 'addressIn':
        return this.#addressIn(statement.side, statement.cidr, statement.not);
      case 'inInterface':
        return [
          { kind: 'meta', key: 'iifname', into: FIRST },
          compare(statement.not, interfaceName(statement.name)),
        ];
      case 'protocol':
        return protocolIs(statement.protocol);
      case 'hasPort':
        return [
          { kind: 'payload', base: 'transport', offset: 2, bytes: 2, into: FIRST },
          compare(true, Uint8Array.of(0, 0)),
        ];
      case 'isRewritten':
        return [{ kind: 'ct', key: 'status', into: FIRST }, mask(CT_STATUS_DNAT), compare(true, hostU32(0))];
      case 'hasMark':
        return [
          { kind: 'meta', key: 'mark', into: FIRST },
          mask(statement.mark),
          compare(!statement.not, hostU32(0)),
        ];
      case 'changeMark':
        return changeMark(statement.mark, statement.operation);
      case 'learn':
        return this.#learn(statement);
      case 'masquerade':
        return [{ kind: 'masquerade', flags: ['fully-random'] }];
      case 'reject':
        return [{ kind: 'reject', with: 'icmp', code: this.#facts.portUnreachable }];
      case 'drop':
      case 'return':
        return [{ kind: 'verdict', verdict: statement.kind }];
      case 'jump':
      case 'goto':
        return [{ kind: 'verdict', verdict: statement.kind, chain: statement.chain }];
    }
  }

  /** One part behind the other, each in registers of its own. */
  #key(key: Key, isRanges = false): readonly Expression[] {
    let word = 0;
    return key.flatMap((part) => {
      const into = registerAt(word);
      word += wordsOf(this.#bytesOf(part));
      const load = this.#load(part, into);
      if (!isRanges || part !== 'protocol') return [load];
      return [load, { kind: 'byteorder', operation: 'hton', from: into, into, bytes: 1, size: 2 } as const];
    });
  }

  #bytesOf(part: KeyPart): number {
    if (typeof part === 'object') return 4;
    return part === 'protocol' || part === 'port' || part === 'originalPort' ? 2 : this.#facts.bytes;
  }

  #load(part: KeyPart, into: number): Expression {
    const { name, bytes, source, destination } = this.#facts;
    if (typeof part === 'object') return { kind: 'numgen', generator: 'random', modulus: part.drawnOf, into };
    switch (part) {
      case 'source':
        return { kind: 'payload', base: 'network', offset: source, bytes, into };
      case 'destination':
        return { kind: 'payload', base: 'network', offset: destination, bytes, into };
      case 'protocol':
        return { kind: 'meta', key: 'l4proto', into };
      case 'port':
        return { kind: 'payload', base: 'transport', offset: 2, bytes: 2, into };
      case 'originalSource':
        return { kind: 'ct', key: `${name} saddr`, direction: 'original', into };
      case 'originalDestination':
        return { kind: 'ct', key: `${name} daddr`, direction: 'original', into };
      case 'originalPort':
        return { kind: 'ct', key: 'proto-dst', direction: 'original', into };
    }
  }

  #dnat(map: string): readonly Expression[] {
    const { name, bytes } = this.#facts;
    return [
      { kind: 'lookup', set: map, from: FIRST, into: FIRST },
      {
        kind: 'nat',
        direction: 'dnat',
        family: name,
        address: FIRST,
        port: registerAt(wordsOf(bytes)),
        flags: [],
      },
    ];
  }

  /** Networks that end at a byte's border are compared by their bytes alone. */
  #addressIn(side: 'source' | 'destination', cidr: Cidr, not: boolean): readonly Expression[] {
    const prefix = prefixOf(cidr);
    const { first } = rangeOf(cidr);
    const offset = this.#facts[side];
    if (prefix % 8 === 0 && prefix > 0) {
      const bytes = prefix / 8;
      return [
        { kind: 'payload', base: 'network', offset, bytes, into: FIRST },
        compare(not, first.slice(0, bytes)),
      ];
    }
    const bits = first.map((_, index) => (0xff00 >> Math.min(8, Math.max(0, prefix - index * 8))) & 0xff);
    return [
      { kind: 'payload', base: 'network', offset, bytes: first.length, into: FIRST },
      { kind: 'bitwise', from: FIRST, into: FIRST, mask: bits, xor: new Uint8Array(first.length) },
      compare(not, first),
    ];
  }

  /** The data of the entry begins at the next large register behind the key, as nft has it, if there is room for it. */
  #learn({ key, map, seconds }: Extract<Statement, { kind: 'learn' }>): readonly Expression[] {
    const { bytes, destination } = this.#facts;
    const words = key.reduce((sum, part) => sum + wordsOf(this.#bytesOf(part)), 0);
    const aligned = Math.ceil(words / 4) * 4;
    const dataWord = aligned + wordsOf(bytes) < REGISTER_WORDS ? aligned : words;
    const data = registerAt(dataWord);
    return [
      ...this.#key(key),
      { kind: 'payload', base: 'network', offset: destination, bytes, into: data },
      {
        kind: 'payload',
        base: 'transport',
        offset: 2,
        bytes: 2,
        into: registerAt(dataWord + wordsOf(bytes)),
      },
      { kind: 'dynset', operation: 'update', set: map, key: FIRST, data, timeoutMs: seconds * 1000 },
    ];
  }
}

function compare(not: boolean, value: Uint8Array): Expression {
  return { kind: 'compare', from: FIRST, comparison: not ? '!=' : '==', value };
}

function protocolIs(protocol: Protocol): readonly Expression[] {
  return [
    { kind: 'meta', key: 'l4proto', into: FIRST },
    compare(false, Uint8Array.of(protocolByte.number(protocol))),
  ];
}

function mask(bits: number): Expression {
  return { kind: 'bitwise', from: FIRST, into: FIRST, mask: hostU32(bits), xor: hostU32(0) };
}

function changeMark(mark: number, operation: 'set' | 'flip'): readonly Expression[] {
  const kept = operation === 'set' ? ~mark : -1;
  return [
    { kind: 'meta', key: 'mark', into: FIRST },
    { kind: 'bitwise', from: FIRST, into: FIRST, mask: hostU32(kept), xor: hostU32(mark) },
    { kind: 'set meta', key: 'mark', from: FIRST },
  ];
}

/** In the machine's byte order. */
function hostU32(value: number): Uint8Array {
  return new Uint8Array(new Uint32Array([value >>> 0]).buffer);
}

/** A whole name has its padding; the beginning of one has not. */
function interfaceName(name: string): Uint8Array {
  const isPrefix = name.endsWith('*');
  const bytes = new TextEncoder().encode(isPrefix ? name.slice(0, -1) : name);
  if (isPrefix) return bytes;
  const padded = new Uint8Array(INTERFACE_NAME_BYTES);
  padded.set(bytes.subarray(0, INTERFACE_NAME_BYTES - 1));
  return padded;
}
