/**
 * Keeps the kernel's iptables equal to the plan.
 *
 * An ordinary sync compiles the service ports that changed, before and after, and sends the difference. The kernel
 * is read only at the start, after a failure, and when somebody asks to verify.
 */
import { isJunctionError } from '../../errors.ts';
import { deepEqual } from '../../model/equal.ts';
import type { ServicePortId } from '../../model/servicePort.ts';
import type { Plan, ServicePortPlan } from '../../plan/types.ts';
import { printStep, type Step, sizeOf } from './edit.ts';
import { type CompileOptions, EMPTY_FRAGMENT, type Fragment, type Layout } from './fragment.ts';
import { fullSteps } from './full.ts';
import { type FragmentChange, incrementalSteps, TABLES } from './incremental.ts';
import { parseSave, type Tables } from './parse.ts';
import type { Table } from './rule.ts';

/** What the backend needs of the outside world. */
export interface TableDoor {
  save(table: Table, options: { readonly counters: boolean }): Promise<string>;
  restore(table: Table, text: string): Promise<void>;
  /** How many chains one restore should have at most. */
  readonly chainsPerRestore?: number;
}

export interface SyncReport {
  readonly kind: 'full' | 'incremental' | 'nothing';
  readonly restores: number;
  readonly bytes: number;
  readonly chains: number;
  readonly rules: number;
  /** Service ports whose rules the kernel would not take; what they had before stays in force. */
  readonly refused: ReadonlyMap<ServicePortId, Error>;
}

/** Above this many endpoints, comments on each of them cost more than they tell. */
const LARGE_CLUSTER = 1000;

export type StaticOptions = Omit<CompileOptions, 'endpointComments' | 'view' | 'family'>;

interface Applied {
  readonly plan: ServicePortPlan;
  readonly endpointComments: boolean;
}

export class IptablesBackend {
  readonly #layout: Layout;
  readonly #door: TableDoor;
  readonly #applied = new Map<ServicePortId, Applied>();
  #appliedOptions: CompileOptions | undefined;
  #needsFull = true;
  /** Apart from `#needsFull`, so that a request during a sync is not forgotten at its end. */
  #fullRequested = false;
  #refused: ReadonlyMap<ServicePortId, Error> = new Map();

  constructor(layout: Layout, door: TableDoor) {
    this.#layout = layout;
    this.#door = door;
  }

  /** The next sync reads the kernel and mends what differs. */
  requestFull(): void {
    this.#fullRequested = true;
  }

  /** Brings the kernel to the plan. `dirty`: service ports that may differ from what was last written. */
  async sync(plan: Plan, dirty: Iterable<ServicePortId>, settings: StaticOptions): Promise<SyncReport> {
    const options: CompileOptions = {
      ...settings,
      family: plan.family,
      view: plan.view,
      endpointComments: plan.endpointCount <= LARGE_CLUSTER,
    };
    const ids = [...dirty];
    const mustLook = this.#needsFull || this.#fullRequested || this.#mustRewriteAll(options);
    if (mustLook || ids.some((id) => this.#refused.has(id))) return this.#syncFull(plan, options);
    try {
      return await this.#syncIncremental(plan, ids, options);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // Somebody else has been at our chains, or the kernel will not have a rule: look, mend, find out whose.
      return await this.#syncFull(plan, options);
    }
  }

  #mustRewriteAll(options: CompileOptions): boolean {
    const { endpointComments: _, ...now } = options;
    const { endpointComments: __, ...before } = this.#appliedOptions ?? options;
    return !deepEqual(now, before);
  }

  async #syncIncremental(
    plan: Plan,
    ids: readonly ServicePortId[],
    options: CompileOptions,
  ): Promise<SyncReport> {
    const steps = this.stepsFor(plan, ids, options);
    this.#needsFull = true; // until all of it is in the kernel
    let bytes = 0;
    for (const step of steps) {
      const text = printStep(step);
      bytes += text.length;
      await this.#door.restore(step.table, text);
    }
    this.#needsFull = false;
    for (const id of ids) this.#remember(plan, id, options);
    return {
      kind: steps.length > 0 ? 'incremental' : 'nothing',
      restores: steps.length,
      bytes,
      ...sizeOf(steps),
      refused: this.#refused,
    };
  }

  /** What an incremental sync would send. */
  stepsFor(plan: Plan, ids: readonly ServicePortId[], options: CompileOptions): readonly Step[] {
    const changes = ids.map((id): FragmentChange => {
      const applied = this.#applied.get(id);
      return {
        owner: id,
        before: applied
          ? this.#compile(applied.plan, { ...options, endpointComments: applied.endpointComments })
          : EMPTY_FRAGMENT,
        after: this.#compile(plan.servicePorts.get(id), options),
      };
    });
    return incrementalSteps(this.#layout, changes, this.#door.chainsPerRestore);
  }

  #compile(port: ServicePortPlan | undefined, options: CompileOptions): Fragment {
    return port ? this.#layout.servicePort(port, options) : EMPTY_FRAGMENT;
  }

  async #syncFull(plan: Plan, options: CompileOptions): Promise<SyncReport> {
    this.#needsFull = true;
    this.#fullRequested = false;
    const sender = new Sender(this.#door);
    const desired = {
      layout: this.#layout,
      options,
      base: this.#layout.base(options),
      fragments: compileAll(this.#layout, plan, options),
    };
    const steps = fullSteps(await this.#read(), desired, this.#door.chainsPerRestore);
    for (const step of steps) {
      if (step.phase !== 'garbage') await sender.send(step);
      // A refused service keeps what it had, so chains that look unused may still be its own.
      else if (sender.refused.size === 0) await sender.trySend(step);
    }

    this.#needsFull = false;
    this.#refused = sender.refused;
    this.#appliedOptions = options;
    this.#applied.clear();
    for (const id of plan.servicePorts.keys()) this.#remember(plan, id, options);
    return { kind: 'full', ...sender.sent, refused: sender.refused };
  }

  #remember(plan: Plan, id: ServicePortId, options: CompileOptions): void {
    const port = plan.servicePorts.get(id);
    if (port) this.#applied.set(id, { plan: port, endpointComments: options.endpointComments });
    else this.#applied.delete(id);
  }

  async #read(): Promise<Tables> {
    const tables = new Map<string, ReturnType<Tables['get']> & object>();
    for (const table of TABLES) {
      const chains = parseSave(await this.#door.save(table, { counters: true })).get(table);
      if (chains) tables.set(table, chains);
    }
    return tables;
  }
}

export function* compileAll(
  layout: Layout,
  plan: Plan,
  options: CompileOptions,
): Generator<readonly [ServicePortId, Fragment]> {
  for (const [id, port] of plan.servicePorts) yield [id, layout.servicePort(port, options)];
}

/** The kernel said no to the rules, as opposed to a lock, a missing program or a full disk. */
function isRefusal(error: unknown): boolean {
  return isJunctionError(error, 'IPTABLES_RESTORE_FAILED');
}

/** Sends steps; where the kernel refuses one, finds the service port that it is about and goes on without it. */
class Sender {
  readonly #door: TableDoor;
  readonly refused = new Map<ServicePortId, Error>();
  #restores = 0;
  #bytes = 0;
  #chains = 0;
  #rules = 0;

  constructor(door: TableDoor) {
    this.#door = door;
  }

  get sent(): Pick<SyncReport, 'restores' | 'bytes' | 'chains' | 'rules'> {
    return { restores: this.#restores, bytes: this.#bytes, chains: this.#chains, rules: this.#rules };
  }

  async send({ table, pieces }: Step): Promise<void> {
    const wanted = pieces.filter(({ owner }) => owner === undefined || !this.refused.has(owner));
    if (wanted.length === 0) return;
    const step = { table, pieces: wanted };
    try {
      const text = printStep(step);
      await this.#door.restore(table, text);
      this.#count(step, text);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      await this.#divide(step, error);
    }
  }

  /** Sends what can be sent. A chain that somebody else's rule jumps to, for one, cannot be deleted. */
  async trySend({ table, pieces }: Step): Promise<void> {
    try {
      await this.send({ table, pieces });
    } catch (error) {
      if (!isRefusal(error)) throw error;
      if (pieces.length === 1) return;
      const middle = Math.ceil(pieces.length / 2);
      await this.trySend({ table, pieces: pieces.slice(0, middle) });
      await this.trySend({ table, pieces: pieces.slice(middle) });
    }
  }

  async #divide({ table, pieces }: Step, error: unknown): Promise<void> {
    const owners = new Set(pieces.map(({ owner }) => owner));
    const [owner] = owners;
    if (owners.size === 1) {
      if (owner === undefined) throw error; // our own chains: nothing to go on with
      this.refused.set(owner, error instanceof Error ? error : new Error(String(error)));
      return;
    }
    const half = new Set([...owners].slice(0, Math.ceil(owners.size / 2)));
    await this.send({ table, pieces: pieces.filter((each) => half.has(each.owner)) });
    await this.send({ table, pieces: pieces.filter((each) => !half.has(each.owner)) });
  }

  #count(step: Step, text: string): void {
    const { chains, rules } = sizeOf([step]);
    this.#restores++;
    this.#bytes += text.length;
    this.#chains += chains;
    this.#rules += rules;
  }
}
