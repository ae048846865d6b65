/** Tables of nf_tables as the kernel's messages, which a dump for a bundle keeps. */
import type { Family } from '../../../model/ip.ts';
import type { AttributeTable, Rows, ValueOf } from '../../../netlink/attributes.ts';
import { MessageWriter } from '../../../netlink/codec.ts';
import { decodeElements, ELEMENTS } from '../../../netlink/nftables/elements.ts';
import { nftRequest } from '../../../netlink/nftables/message.ts';
import {
  CHAIN_ATTRIBUTES,
  decodeChain,
  decodeRule,
  decodeSet,
  decodeTable,
  NFT_TABLE_F_DORMANT,
  RULE_ATTRIBUTES,
  SET_ATTRIBUTES,
  TABLE_ATTRIBUTES,
} from '../../../netlink/nftables/objects.ts';
import { type DumpFields, dumpHeader, readDump } from '../../dump.ts';
import { groupBy } from '../rules/table.ts';
import type { KnownFacts } from './compare.ts';
import type { MemorySet, MemoryTable } from './source.ts';

interface NftDump {
  readonly facts: KnownFacts;
  /** What a dump leaves out. */
  readonly notes: readonly string[];
  readonly tables: readonly MemoryTable[];
}

/** A message has room for some 64 KiB. */
const ELEMENTS_PER_MESSAGE = 200;

export function writeDump(family: Family, { facts, notes, tables }: NftDump): unknown {
  return { ...dumpHeader('nftables', family), facts, notes, tables: tables.map(writeTable) };
}

function writeTable({ family, table, isDormant, chains, sets }: MemoryTable): unknown {
  const message = <R extends Rows>(
    attributes: AttributeTable<R>,
    value: Partial<ValueOf<AttributeTable<R>>>,
  ) => {
    const writer = new MessageWriter();
    nftRequest('get table', 0, family, attributes, value).payload(writer);
    return Buffer.from(writer.finish()).toString('hex');
  };
  return {
    family,
    table,
    message: message(TABLE_ATTRIBUTES, { name: table, flags: isDormant ? NFT_TABLE_F_DORMANT : 0 }),
    chains: chains.map(({ name, base }) => message(CHAIN_ATTRIBUTES, { table, name, ...base })),
    rules: chains.flatMap(({ name: chain, rules }) =>
      rules.map(({ expressions }) => message(RULE_ATTRIBUTES, { table, chain, expressions })),
    ),
    sets: sets.map((set) => message(SET_ATTRIBUTES, { table, ...set })),
    elements: sets.flatMap(({ name: set, elements }) => {
      const messages: string[] = [];
      for (let from = 0; from < elements.length; from += ELEMENTS_PER_MESSAGE) {
        const some = elements.slice(from, from + ELEMENTS_PER_MESSAGE);
        messages.push(message(ELEMENTS, { table, set, elements: some }));
      }
      return messages;
    }),
  };
}

export function readNftDump(family: Family, dump: unknown): NftDump {
  return readDump('nftables', family, dump, (fields) => {
    const facts = fields.map('facts');
    return {
      facts: {
        masqueradeBit: facts.number('masqueradeBit'),
        nodeIps: facts.ips('nodeIps'),
        counters: facts.optional('counters', () => facts.flag('counters')),
        serviceCidrs: facts.optional('serviceCidrs', () => facts.cidrs('serviceCidrs')),
      },
      notes: fields.texts('notes'),
      tables: fields.maps('tables').map(readTable),
    };
  });
}

function readTable(fields: DumpFields): MemoryTable {
  const decoded = fields.messages('elements').map(decodeElements);
  const rules = groupBy(fields.messages('rules').map(decodeRule), ({ chain }) => chain);
  const elements = groupBy(decoded, ({ set }) => set);
  return {
    family: fields.choice('family', ['ip', 'ip6', 'inet']),
    table: fields.text('table'),
    isDormant: decodeTable(Buffer.from(fields.text('message'), 'hex')).isDormant,
    chains: fields
      .messages('chains')
      .map(decodeChain)
      .map(({ name, base }) => ({ name, base, rules: rules.get(name) ?? [] })),
    sets: fields.messages('sets').map((message): MemorySet => {
      const set = decodeSet(message);
      return { ...set, elements: (elements.get(set.name) ?? []).flatMap((each) => each.elements) };
    }),
  };
}
