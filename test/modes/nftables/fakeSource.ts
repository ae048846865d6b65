/** The tables of a kernel in memory, as the bytes that a kernel would answer with. */
import { lowerRule } from '../../../src/modes/nftables/lower.ts';
import { listOf, specOf } from '../../../src/modes/nftables/sets.ts';
import { TABLE } from '../../../src/modes/nftables/rules/names.ts';
import { NFT_FAMILY } from '../../../src/modes/nftables/rules/print.ts';
import type { Element, TableSet } from '../../../src/modes/nftables/rules/table.ts';
import { NftReader } from '../../../src/modes/nftables/inspect.ts';
import type { KnownFacts } from '../../../src/modes/nftables/kernel/compare.ts';
import {
  type MemorySet,
  MemorySource,
  type MemoryTable,
} from '../../../src/modes/nftables/kernel/memorySource.ts';
import type { Family } from '../../../src/model/ip.ts';
import { MessageWriter } from '../../../src/netlink/codec.ts';
import { decodeElements, elementsRequest, type SetElement } from '../../../src/netlink/nftables/elements.ts';
import { propertiesOf } from '../../../src/netlink/nftables/setSpec.ts';
import type { FakeNftKernel } from './rules/fakeKernel.ts';

/** A reader of the kernel as it is now. */
export function readerOf(
  kernel: FakeNftKernel,
  facts: Partial<KnownFacts> = {},
  others: readonly MemoryTable[] = [],
): NftReader {
  return new NftReader({
    family: kernel.family,
    source: new MemorySource([...(kernel.table ? [memoryTable(kernel)] : []), ...others]),
    facts: () => ({ masqueradeBit: 14, nodeIps: [], ...facts }),
  });
}

export function memoryTable({ table, family }: FakeNftKernel, name = TABLE): MemoryTable {
  const { sets, chains } = table ?? { sets: new Map<string, never>(), chains: new Map<string, never>() };
  return {
    family: NFT_FAMILY[family],
    table: name,
    isDormant: table?.isDormant ?? false,
    chains: Array.from(chains, ([name, { hook, rules }]) => ({
      name,
      base: hook && { type: 'nat', hook: hook.point, priority: hook.priority, policy: 'accept' },
      rules: rules.map((rule) => ({ expressions: lowerRule(rule, family) })),
    })),
    sets: Array.from(sets.values(), ({ set, elements }) => memorySet(set, [...elements.values()], family)),
  };
}

function memorySet(set: TableSet, elements: readonly Element[], family: Family): MemorySet {
  return { name: set.name, ...propertiesOf(specOf(set, family)), elements: encoded(set, elements, family) };
}

function encoded(set: TableSet, elements: readonly Element[], family: Family): readonly SetElement[] {
  const place = { family: NFT_FAMILY[family], table: TABLE, set: set.name };
  return Array.from(listOf(set, elements, false).messages()).flatMap((bytes) => {
    const writer = new MessageWriter();
    elementsRequest('new elements', 0, place, bytes).payload(writer);
    return decodeElements(writer.finish()).elements;
  });
}
