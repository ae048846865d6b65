/** Junction's proxies of both families on node1, taken from one scenario to the next. */
import { deepEqual } from '../../src/model/equal.ts';
import type { Family } from '../../src/model/ip.ts';
import { dataplaneOf } from '../../src/modes/dataplane.ts';
import type { KernelReader } from '../../src/modes/kernelRules.ts';
import type { Plan } from '../../src/plan/types.ts';
import type { ViewSettings } from '../../src/plan/view.ts';
import { type KernelWriter, Proxier } from '../../src/proxy/proxier.ts';
import type { SourceEvents } from '../../src/sources/source.ts';
import type { Faults } from '../contract/faults.ts';
import type { SnapshotObject } from '../../src/sources/manifests/parse.ts';
import { emitDifference, type Snapshot, snapshotKey } from '../../src/sources/manifests/source.ts';
import type { Scenario } from './scenario.ts';

export interface FamilyWriter {
  readonly family: Family;
  /** One that remembers nothing, as after a restart; the kernel keeps what it has. */
  start(faults?: Faults): KernelWriter;
  /** Reads the kernel for questions. */
  readonly kernel?: KernelReader;
  /** Packets are walked now: what was kept of earlier questions is old. */
  readonly beforeQuestions?: () => void;
  /** What each rule or element has counted, by its text. */
  readonly counters?: () => Promise<ReadonlyMap<string, number>>;
}

export class ScenarioProxies {
  readonly #writers: readonly FamilyWriter[];
  #settings: ViewSettings | undefined;
  #proxies: readonly Proxier[] = [];
  #snapshot: Snapshot = new Map();

  constructor(writers: readonly FamilyWriter[]) {
    this.#writers = writers;
  }

  plan(family: Family): Plan {
    return this.proxier(family).plan;
  }

  proxier(family: Family): Proxier {
    const proxy = this.#proxies.find((other) => other.family === family);
    if (!proxy) throw new Error('nothing was applied yet');
    return proxy;
  }

  /** Of a family. */
  writer(family: Family): FamilyWriter {
    const writer = this.#writers.find((other) => other.family === family);
    if (!writer) throw new Error(`nothing serves ${family}`);
    return writer;
  }

  /** From the scenario before to this one: the objects change; where settings do, it is as if Junction was restarted. */
  async apply({ settings, manifests }: Pick<Scenario, 'settings' | 'manifests'>): Promise<void> {
    if (!deepEqual(settings, this.#settings)) this.#restart(settings);
    const world = snapshotOf(manifests);
    for (const proxy of this.#proxies) emitDifference(eventsOf(proxy), this.#snapshot, world);
    this.#snapshot = world;
    await Promise.all(this.#proxies.map(syncAll));
  }

  /** Everything is written again. */
  async resync(): Promise<void> {
    await Promise.all(this.#proxies.map(({ writer, plan }) => dataplaneOf(writer).rewrite(plan)));
  }

  #restart(settings: ViewSettings): void {
    this.#settings = settings;
    this.#snapshot = new Map();
    this.#proxies = this.#writers.map((each) => {
      const writer = each.start();
      const proxy = new Proxier({ family: each.family, settings, writer });
      proxy.onSynced();
      return proxy;
    });
  }
}

async function syncAll(proxy: Proxier): Promise<void> {
  const outcome = await proxy.sync();
  for (const [id, error] of outcome?.report.refused ?? [])
    throw new Error(`${id} was refused`, { cause: error });
}

function snapshotOf({ services, slices, nodes }: Scenario['manifests']): Snapshot {
  const objects: readonly SnapshotObject[] = [
    ...services.map((value): SnapshotObject => ({ kind: 'Service', value })),
    ...slices.map((value): SnapshotObject => ({ kind: 'EndpointSlice', value })),
    ...nodes.map((value): SnapshotObject => ({ kind: 'Node', value })),
  ];
  return new Map(objects.map((object) => [snapshotKey(object), object]));
}

function eventsOf(proxy: Proxier): SourceEvents {
  return {
    service: (key, service) => void proxy.onService(key, service),
    endpointSlice: (key, slice) => void proxy.onEndpointSlice(key, slice),
    node: (_, node) => void proxy.onNode(node),
    synced: () => {},
    report: (problem) => {
      throw new Error(JSON.stringify(problem));
    },
  };
}
