/**
 * A second table, that no other program can change: the kernel lets only the socket that made it, and removes it with that
 * socket. `nft flush ruleset` leaves it alone, and as long as one chain that rewrites addresses is there, the kernel goes
 * on rewriting the packets of open connections.
 *
 * Its rules come after ours, so that they see the first packets that ours did nothing with. While ours are there, that is
 * none for a service. While another program has removed them, a new connection to a service is held back: its first packet
 * is dropped, the kernel keeps no conntrack entry of it, and the client sends it again a second later.
 *
 * All works without it, so it is never in the way: what fails here is tried again later.
 */
import { messageOf } from '../../../errors.ts';
import { deepEqual } from '../../../model/equal.ts';
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { Plan, ServicePortPlan } from '../../../plan/types.ts';
import { Reconciler } from '../../../proxy/reconciler.ts';
import type { Changes, Resync, ServicePortPlans, WithServicePorts } from '../../../proxy/reconciler.ts';
import { RetryDelay } from '../../../proxy/report.ts';
import { forEachSliced, runToEnd, type TimeSlice } from '../../../time/timeSlice.ts';
import { hairpinsOf, type NftFragment } from './compile.ts';
import { Committer, EditStream } from './committer.ts';
import { diffElements, editsFor } from './diff.ts';
import { NFT_CHAINS, ownerComment } from './names.ts';
import { ReferenceCounts } from './referenceCounts.ts';
import { resync as resyncTable } from './resync.ts';
import {
  fixedElements,
  FRONTEND,
  FRONTEND_FIELDS,
  HAIRPIN_SET,
  hooked,
  masqueradeRules,
  nodePortSets,
  PRIORITIES,
  toNodePorts,
} from './ruleset.ts';
import type { NftSettings, TableOptions } from './ruleset.ts';
import { byName, inSet, nftRule, toChain } from './table.ts';
import type { Element, ElementChanges, NftClient, Ruleset } from './table.ts';

export interface BackstopClient extends Pick<NftClient, 'commit' | 'inspect'> {
  /** Whether there is a table of this name. */
  isThere(): Promise<boolean>;
}

export interface BackstopFailure {
  readonly reason: string;
  /** It is worth another sync after this time. */
  readonly retryMs: number;
  /** Not the same as at the last failure since it stood: some are for ever. */
  readonly isNewReason: boolean;
}

interface BackstopChanges {
  /** Service ports that may have changed; `undefined`: any, and perhaps it does not stand any more. */
  readonly changed: Iterable<ServicePortId> | undefined;
  /** Those that our own table could not take: what it had of them before stays in force. */
  readonly refused: ReadonlyMap<ServicePortId, unknown>;
}

/** Then it is deleted, until a later sync writes it. */
const TRIES = 3;

interface BackstopOptions {
  readonly client: BackstopClient;
  readonly now: () => number;
  readonly timeSlice?: TimeSlice;
}

/** The table without what comes from services. */
interface Base {
  readonly ruleset: Ruleset;
  readonly fixed: readonly Element[];
}

export class Backstop extends Reconciler<Base, WithServicePorts> {
  readonly #given: BackstopOptions;
  readonly #committer: Committer;
  readonly #retry = new RetryDelay();
  #counts = new ReferenceCounts();
  #options: TableOptions | undefined;
  #base: Base = { ruleset: { sets: [], chains: [] }, fixed: [] };
  #isThere = false;
  /** Of the last failure, if it is not there. */
  #reason: string | undefined;

  constructor(given: BackstopOptions) {
    super();
    this.#given = given;
    this.#committer = new Committer(given.client, given.now);
  }

  /** Another sync is worth it after this time. */
  get retryAfterMs(): number | undefined {
    return this.#retry.remainingMs(this.#given.now());
  }

  /** After each sync of our own table. Returns what went wrong. */
  async sync(
    plan: Plan,
    { changed, refused }: BackstopChanges,
    settings: NftSettings,
  ): Promise<BackstopFailure | undefined> {
    if (!this.#retry.isDue(this.#given.now())) return undefined;
    const options = { ...settings, family: plan.family, view: plan.view };
    if (!deepEqual(options, this.#options)) this.#base = baseFor((this.#options = options));
    if (!changed) this.requestFull();
    const ids = [...(changed ?? new Set([...this.applied.keys(), ...plan.servicePorts.keys()]))];
    const servicePorts = this.#without(refused, plan);
    // What went wrong with a change need not be wrong with a new one.
    let failure = await this.#sync(servicePorts, ids);
    for (let tries = 2; failure !== undefined && tries <= TRIES; tries++)
      failure = await this.#sync(servicePorts, ids);
    const isNewReason = failure !== this.#reason;
    this.#reason = failure;
    if (failure === undefined) {
      this.#retry.succeeded();
      this.#isThere = true;
      return undefined;
    }
    await this.#giveUp();
    return { reason: failure, retryMs: this.#retry.failed(this.#given.now()), isNewReason };
  }

  /** Those that were refused stay as they were last written. */
  #without(refused: BackstopChanges['refused'], { servicePorts }: Plan): ServicePortPlans {
    if (refused.size === 0) return servicePorts;
    const wanted = new Map(servicePorts);
    for (const id of refused.keys()) {
      const kept = this.applied.get(id);
      if (kept && wanted.has(id)) wanted.set(id, kept);
      else wanted.delete(id);
    }
    return wanted;
  }

  /** After a sync of our own table that failed: what it was to serve no more is not held back any more either. */
  async release({ servicePorts }: Plan, changed: Iterable<ServicePortId>): Promise<void> {
    if (!this.#isThere) return;
    const { applied } = this;
    const held = (port: ServicePortPlan | undefined): readonly Element[] => (port ? heldFrontends(port) : []);
    const gone = [...changed].filter((id) => {
      const { removes } = runToEnd(diffElements(held(applied.get(id)), held(servicePorts.get(id))));
      return removes.length > 0;
    });
    // As a whole, for the time being: the next sync brings back what is left.
    const left = new Map(applied);
    for (const id of gone) left.delete(id);
    if ((await this.#sync(left, gone)) !== undefined) this.#isThere = false;
  }

  /** Returns why it failed. */
  async #sync(servicePorts: ServicePortPlans, ids: readonly ServicePortId[]): Promise<string | undefined> {
    try {
      await this.reconcile({ servicePorts }, ids, this.#base);
      return undefined;
    } catch (error) {
      return messageOf(error);
    }
  }

  protected async apply(changes: Changes<Base, WithServicePorts>): Promise<boolean> {
    await this.#change(changes.ids, changes);
    return true;
  }

  /** By difference: while it is written as a whole, packets that our own table does not see would not be held back. */
  protected async resync(resync: Resync<Base, WithServicePorts>): Promise<void> {
    const { plan, options, unwritten, report } = resync;
    const { client, timeSlice } = this.#given;
    if ((await client.isThere()) && unwritten) return this.#change(unwritten, resync);
    const counts = new ReferenceCounts();
    this.#counts = counts;
    await forEachSliced(plan.servicePorts.values(), (port) => counts.add(compile(port)), timeSlice);
    counts.takeChanges();
    // Refused where another socket made the table: it goes with that socket, whatever it holds.
    await this.#committer.commit([{ kind: 'addTable', isOwned: true }]);
    await resyncTable(
      {
        client,
        committer: this.#committer,
        ruleset: options.ruleset,
        shared: () => [...options.fixed, ...counts.elements()],
        servicePorts: plan.servicePorts,
        compile: heldFrontends,
        ...(timeSlice && { timeSlice }),
      },
      report,
    );
    for (const error of report.refused.values()) throw error;
  }

  async #change(
    ids: Iterable<ServicePortId>,
    changes: Pick<Changes<Base, WithServicePorts>, 'plan' | 'applied'>,
  ): Promise<void> {
    await this.#write(await editsFor(ids, changes, compile, this.#counts, this.#given));
  }

  /** All deletes first: a frontend may pass from one service port to another. */
  async #write(edits: readonly ElementChanges[]): Promise<void> {
    const stream = new EditStream(this.#committer, byName(this.#base.ruleset.sets));
    const removes = edits.flatMap((edit) => edit.removes);
    await stream.addShared({ removes, adds: edits.flatMap(({ adds }) => adds) });
    await stream.flush();
  }

  /** One that holds back what it should not would be worse than none. */
  async #giveUp(): Promise<void> {
    this.#isThere = false;
    try {
      if (await this.#given.client.isThere()) await this.#given.client.commit([{ kind: 'deleteTable' }]);
    } catch {
      // The next one that is built replaces it.
    }
  }
}

const HELD = { frontends: 'frontends', ports: 'ports' } as const;
const HOLD_BACK = 'hold-back';

function baseFor(options: TableOptions): Base {
  const held = [
    nftRule(inSet(FRONTEND.address, HELD.frontends), { kind: 'drop' }),
    nftRule(inSet(FRONTEND.nodePort, HELD.ports), ...toNodePorts(options), { kind: 'drop' }),
  ];
  const toHeld = [nftRule(toChain(HOLD_BACK))];
  const ruleset: Ruleset = {
    sets: [
      {
        name: HELD.frontends,
        key: FRONTEND_FIELDS.address,
        comment: 'addresses of services that have endpoints',
      },
      {
        name: HELD.ports,
        key: FRONTEND_FIELDS.nodePort,
        comment: 'node ports of services that have endpoints',
      },
      HAIRPIN_SET,
      ...nodePortSets(options.view),
    ],
    chains: [
      { name: HOLD_BACK, rules: held },
      hooked(NFT_CHAINS.prerouting, PRIORITIES.backstopDestination, toHeld),
      hooked(NFT_CHAINS.output, PRIORITIES.backstopDestination, toHeld),
      // Also for what was sent on just before the rules were deleted.
      hooked(NFT_CHAINS.postrouting, PRIORITIES.backstopSource, masqueradeRules(options)),
    ],
  };
  const sets = byName(ruleset.sets);
  return { ruleset, fixed: fixedElements(options).filter(({ set }) => sets.has(set)) };
}

function compile(port: ServicePortPlan): NftFragment {
  return { elements: heldFrontends(port), counted: hairpinsOf(port), parts: [] };
}

/** Frontends that our rules send somewhere, for some clients at least: those they never leave alone. */
function heldFrontends({ frontends, protocol, name }: ServicePortPlan): readonly Element[] {
  const comment = ownerComment(name);
  const held: Element[] = [];
  for (const { address, port, routes } of frontends) {
    const { pod, node, outside } = routes;
    if (![pod, node, outside].some(({ verdict }) => verdict === 'forward')) continue;
    held.push(
      address === undefined
        ? { set: HELD.ports, key: { protocol, port }, comment }
        : { set: HELD.frontends, key: { address, protocol, port }, comment },
    );
  }
  return held;
}
