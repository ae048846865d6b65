/** Junction on the lab's node1: the real proxy and the real iptables programs, in that node's network. */
import type { LayoutName } from '../../src/backends/iptables/fragment.ts';
import { LAYOUTS } from '../../src/backends/iptables/layouts/index.ts';
import { parseSave, type Tables } from '../../src/backends/iptables/parse.ts';
import { IptablesDoor } from '../../src/kernel/iptables/door.ts';
import { IptablesProxy } from '../../src/kernel/iptables/iptablesProxy.ts';
import type { Variant } from '../../src/kernel/iptables/version.ts';
import { prefixed, run } from '../../src/kernel/process.ts';
import type { Host } from '../../src/lab/host.ts';
import { deepEqual } from '../../src/model/equal.ts';
import { FAMILIES, type Family } from '../../src/model/ip.ts';
import type { Plan } from '../../src/plan/types.ts';
import type { ViewSettings } from '../../src/plan/view.ts';
import { FamilyProxy } from '../../src/proxy/familyProxy.ts';
import type { SourceEvents } from '../../src/sources/source.ts';
import { tellDifference, type World, worldKey, type WorldObject } from '../../src/sources/world.ts';
import { node1Addresses, type Scenario } from './scenario.ts';

export interface LabNodeOptions {
  readonly layout: LayoutName;
  readonly variant: Variant;
  /** So that other people's iptables does not wait for this one. */
  readonly lockPath: string;
}

/** Counters belong to a network namespace, and the test's is not node1's. */
export const NO_COUNTERS = { invalidDropped: false, localhostNodePorts: false };

export class LabNode {
  readonly layout: LayoutName;
  readonly #doors: readonly IptablesDoor[];
  #settings: ViewSettings | undefined;
  #proxies: readonly FamilyProxy[] = [];
  #world: World = new Map();

  private constructor(layout: LayoutName, doors: readonly IptablesDoor[]) {
    this.layout = layout;
    this.#doors = doors;
  }

  static async start(host: Host, { layout, variant, lockPath }: LabNodeOptions): Promise<LabNode> {
    const runner = prefixed(run, ['nsenter', `--net=/proc/${host.pid}/ns/net`]);
    const doors = FAMILIES.map((family) => IptablesDoor.open({ family, variant, runner, lockPath }));
    return new LabNode(layout, await Promise.all(doors));
  }

  plan(family: Family): Plan {
    const proxy = this.#proxies.find((other) => other.family === family);
    if (!proxy) throw new Error('nothing was applied yet');
    return proxy.plan;
  }

  /** What is in node1's kernel. */
  async tables(family: Family): Promise<Tables> {
    const door = this.#doors.find((other) => other.family === family);
    if (!door) throw new Error(`no iptables for ${family}`);
    const saved = [await door.save('filter'), await door.save('nat')];
    return new Map(saved.flatMap((text) => [...parseSave(text)]));
  }

  /** From the scenario before to this one: the objects change; where settings do, it is as if Junction was restarted. */
  async apply({ settings, manifests }: Scenario): Promise<void> {
    if (!deepEqual(settings, this.#settings)) this.#restart(settings);
    const world = worldOf(manifests);
    for (const proxy of this.#proxies) tellDifference(eventsOf(proxy), this.#world, world);
    this.#world = world;
    await Promise.all(this.#proxies.map(syncAll));
  }

  #restart(settings: ViewSettings): void {
    this.#settings = settings;
    this.#world = new Map();
    this.#proxies = this.#doors.map((door) => {
      const backend = new IptablesProxy({
        door,
        layout: LAYOUTS[this.layout],
        masqueradeBit: 14,
        addresses: () => node1Addresses(door.family),
        nfacct: NO_COUNTERS,
        dropInvalid: true,
      });
      const proxy = new FamilyProxy({ family: door.family, settings, backend });
      proxy.onSynced();
      return proxy;
    });
  }
}

async function syncAll(proxy: FamilyProxy): Promise<void> {
  const outcome = await proxy.sync();
  for (const [id, error] of outcome?.report.refused ?? [])
    throw new Error(`${id} was refused`, { cause: error });
}

function worldOf({ services, slices, nodes }: Scenario['manifests']): World {
  const objects: readonly WorldObject[] = [
    ...services.map((value): WorldObject => ({ kind: 'Service', value })),
    ...slices.map((value): WorldObject => ({ kind: 'EndpointSlice', value })),
    ...nodes.map((value): WorldObject => ({ kind: 'Node', value })),
  ];
  return new Map(objects.map((object) => [worldKey(object), object]));
}

function eventsOf(proxy: FamilyProxy): SourceEvents {
  return {
    service: (key, service) => void proxy.onService(key, service),
    endpointSlice: (namespace, name, slice) => void proxy.onEndpointSlice(namespace, name, slice),
    node: (_, node) => void proxy.onNode(node),
    synced: () => {},
    report: (problem) => {
      throw new Error(JSON.stringify(problem));
    },
  };
}
