/** Tables of iptables in memory. */
import { ChainReader } from '../../../../src/modes/iptables/chains.ts';
import type { TextRule } from '../../../../src/modes/iptables/rules/textRule.ts';

export interface MemoryChain {
  /** Built-in chains only. */
  readonly policy?: string | undefined;
  readonly rules: readonly TextRule[];
}

/** Table → chain → rules, in the order of the text. */
export type MemoryTables = ReadonlyMap<string, ReadonlyMap<string, MemoryChain>>;

/** The state that a save describes. */
export function parseSave(text: string): MemoryTables {
  const parts = [...text.matchAll(/^\*(\S+)\n([^*]*(?:\n(?!\*).*)*)/gm)];
  return new Map(
    parts.map(([, table = '', lines = '']) => {
      const reader = new ChainReader(table);
      reader.take(`${lines}\n`);
      return [table, reader.chains];
    }),
  );
}
