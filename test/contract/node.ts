/** Junction in one mode and one family on node1, as the contract drives it. */
import type { Mechanism } from '../../src/modes/deviations.ts';
import { type Dataplane, dataplaneOf } from '../../src/modes/dataplane.ts';
import type { Family, Ip } from '../../src/model/ip.ts';
import type { KernelWriter } from '../../src/proxy/proxier.ts';
import type { SyncReport } from '../../src/proxy/report.ts';
import { ip } from '../plan/given.ts';
import { expectedIn } from '../scenarios/expectations.ts';
import { type Fate, printRow, type Row } from '../scenarios/packets.ts';
import { Faults } from './faults.ts';
import { World } from './world.ts';

/** What another program does to the kernel. */
export type Deed =
  | { readonly kind: 'flush' | 'deleteHooks' | 'addOwnRules' }
  | { readonly kind: 'deleteService'; readonly clusterIP: Ip };

/** What a call of the dataplane came to. */
export interface Outcome {
  readonly kind?: SyncReport['kind'];
  readonly commits?: number;
  readonly objects?: number;
  readonly refused?: readonly string[];
  readonly error?: string | undefined;
}

/** The kernel side: in memory, or a real one. */
export interface KernelSide {
  readonly mechanism: Mechanism;
  /** No other program can change what is ours. */
  readonly isProtected: boolean;
  /** A process that remembers nothing. */
  start(world: World, faults: Faults): Promise<KernelWriter>;
  /** What becomes of these packets, in the words of their rows. */
  packets(rows: readonly Row[], world: World): Promise<readonly string[]>;
  /** Where it is not as after a first start with this world. */
  differences(world: World): Promise<readonly string[]>;
  /** False: the kernel refused it. */
  perform(deed: Deed): Promise<boolean>;
  /** Rules of other programs that are gone. */
  missingForeign(): Promise<readonly string[]>;
  /** Every endpoint has one. */
  openConnections(): Promise<void>;
  brokenConnections(): Promise<readonly string[]>;
  endConnections(world: World): Promise<void>;
}

/** What the steps of a case do with a node, here or in another process. */
export interface DrivenNode {
  readonly isProtected: boolean;
  /** How long packets may take to go where they should. */
  readonly settleMs: number;
  serve(lines: readonly string[]): Promise<Outcome>;
  setZone(zone: string): Promise<Outcome>;
  setAddresses(addresses: readonly string[]): Promise<Outcome>;
  retry(): Promise<Outcome>;
  restart(): Promise<Outcome>;
  rewrite(): Promise<Outcome>;
  refuse(text: string | undefined): Promise<void>;
  loseNextAnswer(): Promise<void>;
  stopAfter(writes: number): Promise<void>;
  watch(rows: readonly Row[]): Promise<void>;
  /** The rows as they should be in this mode, and as they are. */
  packets(rows: readonly Row[]): Promise<readonly (readonly [expected: string, seen: string])[]>;
  differences(): Promise<readonly string[]>;
  /** False: the kernel refused it. */
  perform(deed: Deed): Promise<boolean>;
  missingForeign(): Promise<readonly string[]>;
  openConnections(rows: readonly Row[]): Promise<void>;
  /** Those of the connections that were opened on which nothing is answered any more. */
  brokenConnections(): Promise<readonly string[]>;
  endConnections(): Promise<void>;
}

export class ContractNode implements DrivenNode {
  readonly #side: KernelSide;
  readonly #world: World;
  readonly #faults = new Faults();
  #dataplane: Dataplane | undefined;
  #watched: readonly Row[] = [];
  /** What a watched packet met while something was written. */
  #gaps: string[] = [];

  readonly isProtected: boolean;
  readonly settleMs = 0;
  readonly mechanism: Mechanism;

  constructor(side: KernelSide, family: Family) {
    this.isProtected = side.isProtected;
    this.mechanism = side.mechanism;
    this.#side = side;
    const localhostNodePorts = side.mechanism === 'current' || side.mechanism === 'classic';
    this.#world = new World(family, { localhostNodePorts });
    this.#faults.onWrite = () => this.#lookAtWatched();
  }

  serve(lines: readonly string[]): Promise<Outcome> {
    this.#world.tell(lines);
    return this.#apply();
  }

  setZone(zone: string): Promise<Outcome> {
    this.#world.setZone(zone);
    return this.#apply();
  }

  setAddresses(addresses: readonly string[]): Promise<Outcome> {
    this.#world.nodeIps = addresses.map(ip);
    return this.#apply();
  }

  retry(): Promise<Outcome> {
    return this.#apply();
  }

  async restart(): Promise<Outcome> {
    this.#faults.stopsAfter = Number.POSITIVE_INFINITY;
    return this.#start();
  }

  async rewrite(): Promise<Outcome> {
    const dataplane = this.#dataplane;
    return dataplane ? this.#outcomeOf((plan) => dataplane.rewrite(plan)) : this.#start();
  }

  async #start(): Promise<Outcome> {
    const dataplane = dataplaneOf(await this.#side.start(this.#world, this.#faults));
    this.#dataplane = dataplane;
    return this.#outcomeOf((plan) => dataplane.rewrite(plan));
  }

  async refuse(text: string | undefined): Promise<void> {
    this.#faults.refused = text;
    if (text === undefined) this.#faults.losesNextAnswer = false;
  }

  async loseNextAnswer(): Promise<void> {
    this.#faults.losesNextAnswer = true;
  }

  async stopAfter(writes: number): Promise<void> {
    this.#faults.stopsAfter = writes;
  }

  async watch(rows: readonly Row[]): Promise<void> {
    this.#watched = rows;
  }

  /** What should become of these packets in this mode. */
  fatesOf(rows: readonly Row[]): readonly Fate[] {
    return rows.map((row) => expectedIn(this.#side.mechanism, this.#world.plan, row));
  }

  async packets(rows: readonly Row[]): Promise<readonly (readonly [expected: string, seen: string])[]> {
    const fates = this.fatesOf(rows);
    const seen = await this.#side.packets(rows, this.#world);
    return rows.map((row, index) => [printRow(row, fates[index] ?? 'nothing'), seen[index] ?? 'nothing']);
  }

  perform(deed: Deed): Promise<boolean> {
    return this.#side.perform(deed);
  }

  missingForeign(): Promise<readonly string[]> {
    return this.#side.missingForeign();
  }

  openConnections(): Promise<void> {
    return this.#side.openConnections();
  }

  brokenConnections(): Promise<readonly string[]> {
    return this.#side.brokenConnections();
  }

  endConnections(): Promise<void> {
    return this.#side.endConnections(this.#world);
  }

  differences(): Promise<readonly string[]> {
    return this.#side.differences(this.#world);
  }

  async #apply(): Promise<Outcome> {
    const dataplane = this.#dataplane;
    if (!dataplane) return this.#start();
    const ids = this.#world.unwritten;
    return this.#outcomeOf((plan) => dataplane.apply(plan, ids));
  }

  async #outcomeOf(call: (plan: World['plan']) => Promise<SyncReport>): Promise<Outcome> {
    const outcome = await this.#attempt(call);
    const gaps = this.#gaps.splice(0);
    if (gaps.length > 0) throw new Error(`while it was written:\n${gaps.join('\n')}`);
    return outcome;
  }

  async #attempt(call: (plan: World['plan']) => Promise<SyncReport>): Promise<Outcome> {
    void this.#world.unwritten;
    try {
      const { kind, commits, objects, refused } = await call(this.#world.plan);
      this.#world.written();
      return { kind, commits, objects, refused: [...refused.keys()] };
    } catch (error) {
      return { error: error instanceof Error ? error.message : String(error) };
    }
  }

  async #lookAtWatched(): Promise<void> {
    if (this.#watched.length === 0) return;
    const rows = this.#watched;
    for (const [index, text] of (await this.#side.packets(rows, this.#world)).entries()) {
      const mayPass = rows[index]?.fate.verdict === 'pass' && text.endsWith('-> pass');
      if (!mayPass && /-> (?:drop|reject|pass|delivered)\b/.test(text)) this.#gaps.push(text);
    }
  }
}
