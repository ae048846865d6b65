/**
 * What should happen to a packet: the plan made from the same files that Junction reads, and `decide`, which says what
 * a plan means. What does happen is measured with real packets and compared.
 */
import type { Settings } from '../../src/config/settings.ts';
import { FAMILIES, type Family } from '../../src/model/ip.ts';
import type { EndpointSlice, Node, ObjectKey, Service } from '../../src/model/objects.ts';
import { type Decision, decide, type Packet } from '../../src/plan/decide.ts';
import type { Plan } from '../../src/plan/types.ts';
import { Proxier } from '../../src/proxy/proxier.ts';
import { ADDRESSES } from '../topology.ts';
import { ManifestSource } from '../../src/sources/manifests/source.ts';
import type { SourceEvents } from '../../src/sources/source.ts';

const NO_WRITER = {
  sync: () => Promise.reject(new Error('the demo writes nothing itself')),
  requestFull: (): void => {},
};

export class Expectation implements SourceEvents {
  readonly #settings: Settings;
  readonly #source: ManifestSource;
  readonly #proxies: ReadonlyMap<Family, Proxier>;

  static async watch(settings: Settings): Promise<Expectation> {
    const expectation = new Expectation(settings);
    await expectation.#source.start(expectation);
    return expectation;
  }

  private constructor(settings: Settings) {
    this.#settings = settings;
    this.#source = new ManifestSource(settings.manifests);
    this.#proxies = new Map(
      FAMILIES.map((family) => [family, new Proxier({ family, settings, writer: NO_WRITER })]),
    );
  }

  /** As the files are now. */
  plans(): readonly Plan[] {
    return [...this.#proxies.values()].map((proxy) => {
      proxy.replan();
      return proxy.plan;
    });
  }

  async stop(): Promise<void> {
    await this.#source.stop();
  }

  service(key: ObjectKey, current: Service | undefined): void {
    for (const proxy of this.#proxies.values()) proxy.onService(key, current);
  }

  endpointSlice(key: ObjectKey, current: EndpointSlice | undefined): void {
    for (const proxy of this.#proxies.values()) proxy.onEndpointSlice(key, current);
  }

  node(name: string, current: Node | undefined): void {
    if (name !== this.#settings.nodeName) return;
    for (const proxy of this.#proxies.values()) proxy.onNode(current);
  }

  synced(): void {}

  /** Junction reads the same files and says what is wrong with them. */
  report(): void {}
}

/** What node1 should do with a packet. */
export function decideOnNode1(plan: Plan, packet: Packet): Decision {
  return decide(plan, packet, { addresses: ADDRESSES.node1[plan.family] });
}
