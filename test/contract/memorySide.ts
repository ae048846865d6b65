/** A mode on a kernel in memory, as the contract, scenarios, random clusters and questions drive it. */
import type { Family, Ip } from '../../src/model/ip.ts';
import type { Mechanism } from '../../src/modes/deviations.ts';
import type { KernelReader } from '../../src/modes/kernelRules.ts';
import type { Plan } from '../../src/plan/types.ts';
import type { KernelWriter } from '../../src/proxy/proxier.ts';
import type { Subject } from '../scenarios/packets.ts';
import { node1Addresses } from '../scenarios/scenario.ts';
import { FakeClock } from '../time/fakeClock.ts';
import { Faults } from './faults.ts';
import type { Deed, KernelSide } from './node.ts';

export abstract class MemorySide implements KernelSide {
  abstract readonly mechanism: Mechanism;
  readonly isProtected: boolean = false;
  readonly family: Family;
  readonly clock = new FakeClock();
  protected started: { readonly world: { readonly plan?: Plan }; readonly writer: KernelWriter } | undefined;

  constructor(family: Family) {
    this.family = family;
  }

  /** The mode, which remembers nothing. */
  async start(
    world: { readonly nodeIps: readonly Ip[]; readonly plan?: Plan } = {
      nodeIps: node1Addresses(this.family),
    },
    faults: Faults = new Faults(),
  ): Promise<KernelWriter> {
    this.started = { world, writer: await this.open(() => world.nodeIps, faults) };
    return this.started.writer;
  }

  protected abstract open(nodeIps: () => readonly Ip[], faults: Faults): Promise<KernelWriter>;
  /** As a question would open it. */
  abstract reader(): Promise<KernelReader>;
  abstract packets(rows: readonly Subject[], world: { readonly plan: Plan }): Promise<readonly string[]>;
  abstract perform(deed: Deed): Promise<boolean>;
  /** What the kernel has, in lines that are the same for two states that mean the same. */
  abstract get state(): readonly string[];
  protected abstract fresh(): MemorySide;

  /** Other programs' rules are put behind ours too, so what is compared is what differs either way. */
  async differences(world: {
    readonly plan: Plan;
    readonly nodeIps: readonly Ip[];
  }): Promise<readonly string[]> {
    const fresh = this.fresh();
    const writer = await fresh.start(world);
    await writer.sync(world.plan, [...world.plan.servicePorts.keys()]);
    const [here, there] = [new Set(this.state), new Set(fresh.state)];
    return [
      ...[...there].filter((line) => !here.has(line)).map((line) => `missing: ${line}`),
      ...[...here].filter((line) => !there.has(line)).map((line) => `extra: ${line}`),
    ];
  }

  async missingForeign(): Promise<readonly string[]> {
    return [];
  }

  /** Of modes other than IPVS, conntrack keeps connections whatever the rules are. */
  async openConnections(): Promise<void> {}

  async brokenConnections(): Promise<readonly string[]> {
    return [];
  }

  async endConnections(): Promise<void> {}
}
