/** The kernel's chains as the reconciler compares them: all of them, or those that another program touched. */
import type { ServicePortPlans } from '../../../proxy/reconciler.ts';
import { forEachSliced, type TimeSlice } from '../../../time/timeSlice.ts';
import type { ChainReader } from './chainReader.ts';
import { compileAll, type CompileOptions, type Layout } from './fragment.ts';
import type { ParsedChain, Tables, WantedChains } from './parse.ts';
import { TABLES } from './rule.ts';
import type { TouchedChains } from './touched.ts';

interface Wanted {
  readonly layout: Layout;
  readonly servicePorts: ServicePortPlans;
  readonly options: CompileOptions;
  readonly timeSlice: TimeSlice | undefined;
}

const KUBELET_CANARY = 'KUBE-KUBELET-CANARY';
const EMPTY_CHAIN: ParsedChain = { rules: [] };

/** Chains of services that are as they should be come as `IN_PLACE`. */
export async function readTables(reader: ChainReader, wanted: Wanted): Promise<Tables> {
  let digests: Promise<WantedChains> | undefined;
  const tables = new Map<string, ReadonlyMap<string, ParsedChain>>();
  for (const table of TABLES) {
    const chains = await reader.readTable(table, () => (digests ??= digestsOf(reader, wanted)));
    if (chains) tables.set(table, chains);
  }
  return tables;
}

async function digestsOf(
  reader: ChainReader,
  { layout, servicePorts, options, timeSlice }: Wanted,
): Promise<WantedChains> {
  const digests = new Set<number>();
  await forEachSliced(
    compileAll(layout, servicePorts, options),
    ([, { chains }]) => {
      for (const { name, rules } of chains) {
        const digest = reader.digest(name, rules);
        if (digest !== undefined) digests.add(digest);
      }
    },
    timeSlice,
  );
  return digests;
}

export async function readTouched(reader: ChainReader, scope: TouchedChains): Promise<Tables> {
  // With kubelet's chain in it, so that rules which may be kubelet's stay: who wrote them was settled at the start.
  const tables = new Map<string, Map<string, ParsedChain>>([
    ['mangle', new Map([[KUBELET_CANARY, EMPTY_CHAIN]])],
  ]);
  for (const { table, chain } of scope.toRead()) {
    const read = await reader.readChain?.(table, chain);
    if (read) tables.set(table, (tables.get(table) ?? new Map<string, ParsedChain>()).set(chain, read));
  }
  return tables;
}
