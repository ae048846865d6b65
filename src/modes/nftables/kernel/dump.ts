/**
 * Tables as JSON: rules as the bytes of their expressions, with their text for people; elements by the bytes of their
 * keys. A dump comes from a file that somebody sent: everything in it is checked when it is read.
 */
import { isJunctionError } from '../../../errors.ts';
import { type Cidr, type Family, parseCidr } from '../../../model/ip.ts';
import { MessageWriter } from '../../../netlink/codec.ts';
import type { SetElement } from '../../../netlink/nftables/elements.ts';
import {
  decodeExpression,
  type Expression,
  VERDICTS,
  writeExpression,
} from '../../../netlink/nftables/expressions.ts';
import { BASE_CHAIN_WORDS, type BaseChain } from '../../../netlink/nftables/objects.ts';
import type { KnownFacts } from './compare.ts';
import type { MemorySet, MemoryTable } from './memorySource.ts';
import { DumpFields } from '../../reading.ts';
import { printExpressions } from './ruleText.ts';
import type { ListedRule, WholeChain } from './source.ts';

const KIND = 'nftables';
const VERSION = 1;

interface NftDump {
  readonly facts: KnownFacts;
  /** What a dump leaves out. */
  readonly notes: readonly string[];
  readonly tables: readonly MemoryTable[];
}

export function writeDump(family: Family, { facts, notes, tables }: NftDump): unknown {
  return { kind: KIND, version: VERSION, family, facts, notes, tables: tables.map(writeTable) };
}

function writeTable({ family, table, isDormant, chains, sets }: MemoryTable): unknown {
  return {
    family,
    table,
    ...(isDormant && { isDormant }),
    chains: chains.map(({ name, base, rules }) => ({
      name,
      ...(base && { base }),
      rules: rules.map(({ expressions, comment }) => ({
        text: printExpressions(expressions),
        ...(comment !== undefined && { comment }),
        expressions: expressions.map(writeBytes),
      })),
    })),
    sets: sets.map(({ name, elements, ...set }) => ({
      name,
      flags: set.flags,
      keyType: set.keyType,
      keyBytes: set.keyBytes,
      dataType: set.dataType,
      dataBytes: set.dataBytes,
      size: set.description.size,
      fields: set.description.fields?.map(({ bytes }) => bytes),
      timeoutMs: set.timeoutMs,
      userData: hex(set.userData),
      ...(set.expression && { expression: writeBytes(set.expression) }),
      elements: elements.map(writeElement),
    })),
  };
}

function writeBytes(expression: Expression): string {
  const writer = new MessageWriter();
  writeExpression(writer, expression);
  return hex(writer.finish());
}

function writeElement(element: SetElement): unknown {
  const { key, keyEnd, isIntervalEnd, data, verdict, comment, timeoutMs, expiresMs, counter } = element;
  return {
    key: hex(key),
    ...(keyEnd && { keyEnd: hex(keyEnd) }),
    ...(isIntervalEnd && { isIntervalEnd }),
    ...(data && { data: hex(data) }),
    ...(verdict && { verdict }),
    ...(comment !== undefined && { comment }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(expiresMs !== undefined && { expiresMs }),
    ...(counter && { packets: String(counter.packets), bytes: String(counter.bytes) }),
  };
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex');
}

export function readNftDump(family: Family, dump: unknown): NftDump {
  const root = new DumpFields(dump, 'the dump');
  if (root.text('kind') !== KIND) throw root.unreadable('it is not of the nftables mode');
  if (root.integer('version') !== VERSION) throw root.unreadable(`only version ${VERSION} is known`);
  if (root.text('family') !== family) throw root.unreadable(`it is not of ${family}`);
  const facts = root.map('facts');
  const counters = facts.optional('counters', () => facts.flag('counters'));
  const serviceCidrs = facts.optional('serviceCidrs', () => facts.texts('serviceCidrs').map(cidrIn(facts)));
  return {
    facts: {
      masqueradeBit: facts.integer('masqueradeBit', 31),
      nodeIps: facts.ips('nodeIps'),
      ...(counters !== undefined && { counters }),
      ...(serviceCidrs && { serviceCidrs }),
    },
    notes: root.texts('notes'),
    tables: root.maps('tables').map(readTable),
  };
}

function cidrIn(at: DumpFields): (text: string) => Cidr {
  return (text) => parseCidr(text) ?? at.fail(`${text} is no CIDR`);
}

function readTable(at: DumpFields): MemoryTable {
  return {
    family: at.choice('family', ['ip', 'ip6', 'inet']),
    table: at.text('table'),
    isDormant: at.optional('isDormant', () => at.flag('isDormant')) ?? false,
    chains: at.maps('chains').map(readChain),
    sets: at.maps('sets').map(readSet),
  };
}

function readChain(at: DumpFields): WholeChain {
  const base = at.optional('base', (): BaseChain => {
    const of = at.map('base');
    return {
      type: of.choice('type', BASE_CHAIN_WORDS.type),
      hook: of.choice('hook', BASE_CHAIN_WORDS.hook),
      priority: of.integer('priority', 0x7fff_ffff, -0x8000_0000),
      policy: of.choice('policy', BASE_CHAIN_WORDS.policy),
    };
  });
  return { name: at.text('name'), ...(base && { base }), rules: at.maps('rules').map(readRule) };
}

function readRule(at: DumpFields): ListedRule {
  const comment = at.optional('comment', () => at.text('comment'));
  return {
    expressions: at.texts('expressions').map((text) => readExpression(at, text)),
    ...(comment !== undefined && { comment }),
  };
}

function readExpression(at: DumpFields, text: string): Expression {
  try {
    return decodeExpression(at.bytesOf(text));
  } catch (error) {
    if (isJunctionError(error)) throw at.unreadable(error.message);
    throw error;
  }
}

function readSet(at: DumpFields): MemorySet {
  const fields = at.optional('fields', () => at.integers('fields', 64));
  const keyBytes = at.integer('keyBytes', 64);
  const number = (key: string): number | undefined => at.optional(key, () => at.integer(key));
  return {
    name: at.text('name'),
    flags: at.integer('flags'),
    keyType: at.integer('keyType'),
    keyBytes,
    dataType: number('dataType'),
    dataBytes: at.optional('dataBytes', () => at.integer('dataBytes', 64)),
    description: { size: number('size'), fields: fields?.map((bytes) => ({ bytes })) },
    timeoutMs: number('timeoutMs'),
    userData: at.bytes('userData'),
    expression: at.optional('expression', () => readExpression(at, at.text('expression'))),
    elements: at.maps('elements').map(readElement),
  };
}

function readElement(at: DumpFields): SetElement {
  const optionalBytes = (key: string): Uint8Array | undefined => at.optional(key, () => at.bytes(key));
  const milliseconds = (key: string): number | undefined =>
    at.optional(key, () => at.integer(key, Number.MAX_SAFE_INTEGER));
  return {
    key: at.bytes('key'),
    keyEnd: optionalBytes('keyEnd'),
    isIntervalEnd: at.optional('isIntervalEnd', () => at.flag('isIntervalEnd')) === true ? true : undefined,
    data: optionalBytes('data'),
    verdict: at.optional('verdict', () => {
      const of = at.map('verdict');
      const verdict = of.choice('verdict', VERDICTS.all);
      return { verdict, chain: of.optional('chain', () => of.text('chain')) };
    }),
    comment: at.optional('comment', () => at.text('comment')),
    timeoutMs: milliseconds('timeoutMs'),
    expiresMs: milliseconds('expiresMs'),
    counter: at.optional('packets', () => ({ packets: at.count('packets'), bytes: at.count('bytes') })),
  };
}
