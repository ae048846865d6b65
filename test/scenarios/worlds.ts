/**
 * Scenarios with equal settings as one cluster, so that a real kernel is written once for many: each has names,
 * addresses and node ports of its own there. From one world to the next the same places change.
 */
import type { KubernetesObject } from './objects.ts';
import type { Row } from './packets.ts';
import { type Scenario, scenario } from './scenario.ts';

/** As many as the second-last numbers of addresses allow. */
const PLACES = 24;

export function worldsOf(scenarios: readonly Scenario[]): readonly Scenario[] {
  const bySettings = new Map<string, Scenario[][]>();
  for (const each of scenarios) {
    const key = JSON.stringify(each.told.settings);
    const worlds = bySettings.get(key) ?? [];
    bySettings.set(key, worlds);
    const last = worlds.at(-1);
    if (last && last.length < PLACES) last.push(each);
    else worlds.push([each]);
  }
  return [...bySettings.values()].flat().map(worldOf);
}

function worldOf(scenarios: readonly Scenario[]): Scenario {
  const [first, ...others] = scenarios;
  if (!first) throw new Error('a world of nothing');
  const name = others.length === 0 ? first.name : `${first.name}, and ${others.length} more`;
  const objects = scenarios.flatMap(({ told }, place) =>
    told.objects.map((object) => JSON.parse(moved(JSON.stringify(object), place)) as KubernetesObject),
  );
  const packets = scenarios.map(({ told }, place) => moved(told.packets, place));
  const world = scenario(name, objects, packets.join('\n'), first.told.settings);
  const names = scenarios.flatMap((each) => each.rows.map(() => each.name));
  const rows = world.rows.map((row, index): Row => ({ ...row, text: `${names[index]}: ${row.text}` }));
  return { ...world, rows };
}

/** Each of a scenario's own names, addresses and node ports to the same of another place. */
function moved(text: string, place: number): string {
  return text
    .replaceAll('"namespace":"default"', `"namespace":"place-${place}"`)
    .replaceAll(/\b10\.96\.0?([13])\./g, (_, third: string) => `10.96.${10 * place + Number(third)}.`)
    .replaceAll(/\b203\.0+\.113\./g, `203.0.${113 + place}.`)
    .replaceAll('fd00:96::', `fd00:96:${place}::`)
    .replaceAll('2001:db8:113::', `2001:db8:113:${place}::`)
    .replaceAll(/\b300(\d\d)\b/g, (_, last: string) => String(30_000 + 100 * place + Number(last)));
}
