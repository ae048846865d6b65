/** A real kernel, seen from the process in node1's network that writes to it. */
import type { Mechanism } from '../../src/modes/deviations.ts';
import type { KernelWriter } from '../../src/proxy/proxier.ts';
import type { FamilyWriter } from '../scenarios/scenarioProxies.ts';
import type { Faults } from './faults.ts';
import type { KernelSide } from './node.ts';
import type { World } from './world.ts';

/** Packets and other programs are the business of whoever drives this process: see real.ts. */
const ELSEWHERE = 'not from this process';

export class RealSide implements KernelSide {
  readonly mechanism: Mechanism;
  readonly isProtected = false;
  readonly #writer: FamilyWriter;

  constructor(mechanism: Mechanism, writer: FamilyWriter) {
    this.mechanism = mechanism;
    this.#writer = writer;
  }

  async start(_: World, faults: Faults): Promise<KernelWriter> {
    return this.#writer.start(faults);
  }

  async differences({ plan }: World): Promise<readonly string[]> {
    this.#writer.beforeQuestions?.();
    const found = (await this.#writer.kernel?.compare(plan)) ?? [];
    return found.map(({ kind, object, text }) => `${kind}: ${object}: ${text}`);
  }

  packets(): Promise<never> {
    throw new Error(ELSEWHERE);
  }

  perform(): Promise<never> {
    throw new Error(ELSEWHERE);
  }

  missingForeign(): Promise<never> {
    throw new Error(ELSEWHERE);
  }

  openConnections(): Promise<never> {
    throw new Error(ELSEWHERE);
  }

  brokenConnections(): Promise<never> {
    throw new Error(ELSEWHERE);
  }

  async endConnections(): Promise<void> {}
}
