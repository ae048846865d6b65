/** The rules, map elements and virtual servers that the service's packets meet, each once, with its counter. */
import type { KernelStep, PacketExplanation } from '../../../src/explain/types.ts';

export interface Stage {
  /** `nat prerouting` */
  readonly hook: string;
  readonly table: string;
  readonly rules: readonly Rule[];
}

export interface Rule {
  readonly key: string;
  readonly chain: string;
  readonly rule: string;
  /** Of a rule that finds nothing: unset where nothing counts. */
  readonly packets?: number;
  readonly elements: readonly FoundElement[];
  readonly isForeign: boolean;
  /** Which packets meet it. */
  readonly by: ReadonlySet<number>;
}

/** What the rule found in a set or map. */
interface FoundElement {
  readonly text: string;
  readonly packets?: number;
  readonly by: ReadonlySet<number>;
}

interface GrowingRule {
  readonly step: KernelStep;
  readonly elements: Map<string, FoundElement>;
  readonly by: Set<number>;
}

/** In the order in which packets meet them. */
export function serviceStages(packets: readonly PacketExplanation[]): readonly Stage[] {
  const stages = new Map<string, Map<string, GrowingRule>>();
  for (const [index, { kernel }] of packets.entries())
    for (const { steps } of kernel?.outcomes ?? [])
      for (const step of steps) {
        const place = `${step.hook}\n${step.table}`;
        const rules = stages.get(place) ?? new Map<string, GrowingRule>();
        stages.set(place, rules);
        note(rules, step, index);
      }
  return [...stages].map(([place, rules]) => {
    const [hook = '', table = ''] = place.split('\n');
    return { hook, table, rules: [...rules].map(([key, rule]) => finished(`${place}\n${key}`, rule)) };
  });
}

function note(rules: Map<string, GrowingRule>, step: KernelStep, packet: number): void {
  const key = `${step.chain}\n${step.rule}`;
  const rule = rules.get(key) ?? { step, elements: new Map<string, FoundElement>(), by: new Set<number>() };
  rules.set(key, rule);
  rule.by.add(packet);
  for (const text of step.found) {
    const by = new Set([...(rule.elements.get(text)?.by ?? []), packet]);
    rule.elements.set(text, { text, ...(step.packets !== undefined && { packets: step.packets }), by });
  }
}

function finished(key: string, { step, elements, by }: GrowingRule): Rule {
  const { chain, rule, packets, isForeign = false } = step;
  return {
    key,
    chain,
    rule,
    ...(packets !== undefined && elements.size === 0 && { packets }),
    elements: [...elements.values()],
    isForeign,
    by,
  };
}
