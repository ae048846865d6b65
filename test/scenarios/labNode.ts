/** Junction on the lab's node1: the real proxy and the real iptables programs, in that node's network. */
import type { LayoutName } from '../../src/modes/iptables/rules/fragment.ts';
import { parseSave, type Tables } from '../../src/modes/iptables/rules/parse.ts';
import { IptablesClient } from '../../src/modes/iptables/client.ts';
import type { Variant } from '../../src/modes/iptables/variant.ts';
import { run } from '../../src/system/processes.ts';
import { prefixed } from '../../lab/prefixed.ts';
import type { Host } from '../../lab/host.ts';
import { FAMILIES, type Family } from '../../src/model/ip.ts';
import type { Plan } from '../../src/plan/types.ts';
import { iptablesBackend } from './iptablesProxier.ts';
import type { Scenario } from './scenario.ts';
import { ScenarioProxies } from './scenarioProxies.ts';

export interface LabNodeOptions {
  readonly layout: LayoutName;
  readonly variant: Variant;
  /** So that other people's iptables does not wait for this one. */
  readonly lockPath: string;
}

export class LabNode {
  readonly layout: LayoutName;
  readonly #doors: readonly IptablesClient[];
  readonly #proxies: ScenarioProxies;

  private constructor(layout: LayoutName, doors: readonly IptablesClient[]) {
    this.layout = layout;
    this.#doors = doors;
    this.#proxies = new ScenarioProxies(doors.map((door) => iptablesBackend(door, layout)));
  }

  static async start(host: Host, { layout, variant, lockPath }: LabNodeOptions): Promise<LabNode> {
    const runner = prefixed(run, ['nsenter', `--net=/proc/${host.pid}/ns/net`]);
    const doors = FAMILIES.map((family) => IptablesClient.open({ family, variant, runner, lockPath }));
    return new LabNode(layout, await Promise.all(doors));
  }

  plan(family: Family): Plan {
    return this.#proxies.plan(family);
  }

  /** What is in node1's kernel. */
  async tables(family: Family): Promise<Tables> {
    const door = this.#doors.find((other) => other.family === family);
    if (!door) throw new Error(`no iptables for ${family}`);
    const saved = [await door.save('filter'), await door.save('nat')];
    return new Map(saved.flatMap((text) => [...parseSave(text)]));
  }

  apply(scenario: Scenario): Promise<void> {
    return this.#proxies.apply(scenario);
  }
}
