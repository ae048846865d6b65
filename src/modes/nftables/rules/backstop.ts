/**
 * A second table, that no other program can change: the kernel lets only the socket that made it, and removes it with that
 * socket. `nft flush ruleset` leaves it alone, and as long as one chain that rewrites addresses is there, the kernel goes
 * on rewriting the packets of open connections. New ones are held back until our rules are there again
 * (`backstopRules.ts`).
 *
 * All works without it, so it is never in the way: what fails here is tried again later.
 */
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { Plan, ServicePortPlan } from '../../../plan/types.ts';
import {
  type Changes,
  type Reconcilable,
  Reconciler,
  type Resync,
  type ServicePortPlans,
  type WithServicePorts,
} from '../../../proxy/reconciler.ts';
import { RetryDelay } from '../../../proxy/report.ts';
import { forEachSliced, type TimeSlice } from '../../../time/timeSlice.ts';
import { hairpinsOf, NO_ELEMENTS } from './compile.ts';
import { Committer, EditStream, slices } from './committer.ts';
import { diffToEnd } from './diff.ts';
import {
  type ChainSpec,
  type Element,
  inSet,
  jumpRule,
  nftRule,
  type RuleSpec,
  type Ruleset,
  setsByName,
  type TableSet,
} from './rule.ts';
import {
  FRONTEND_FIELDS,
  fixedElements,
  FRONTEND,
  HAIRPIN_SET,
  hooked,
  masqueradeRules,
  type NftSettings,
  PRIORITIES,
  type RulesetOptions,
  type TableOptions,
  toNodePorts,
} from './ruleset.ts';
import { ReferenceCounts } from './referenceCounts.ts';
import { addChains, type NftClient, type TableOperation, type TableTransaction } from './transaction.ts';
import { NFT_CHAINS, ownerComment, NFT_SETS } from './names.ts';

export interface BackstopClient extends Pick<NftClient, 'commit'> {
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

interface BackstopOptions {
  readonly client: BackstopClient;
  readonly now: () => number;
  readonly timeSlice?: TimeSlice;
}

/** The table without what service ports have in it. */
interface Base {
  readonly ruleset: Ruleset;
  /** Elements that no service has a part in. */
  readonly fixed: readonly Element[];
}

export class Backstop implements Reconcilable<Base, WithServicePorts> {
  readonly #client: BackstopClient;
  readonly #committer: Committer;
  readonly #timeSlice: TimeSlice | undefined;
  readonly #now: () => number;
  readonly #reconciler = new Reconciler<Base, WithServicePorts>(this);
  readonly #retry = new RetryDelay();
  #hairpins = new ReferenceCounts();
  #base: Base = { ruleset: { sets: [], chains: [] }, fixed: [] };
  #isThere = false;
  /** Of the last failure, if it is not there. */
  #reason: string | undefined;

  constructor({ client, now, timeSlice }: BackstopOptions) {
    this.#client = client;
    this.#committer = new Committer(client, now);
    this.#timeSlice = timeSlice;
    this.#now = now;
  }

  /** Its socket may have gone, and taken it along: the next sync looks. */
  doubt(): void {
    this.#reconciler.requestFull();
  }

  /** Another sync is worth it after this time. */
  get retryAfterMs(): number | undefined {
    return this.#retry.remainingMs(this.#now());
  }

  /** After each sync of our own table. Returns what went wrong. */
  async sync(
    plan: Plan,
    { changed, refused }: BackstopChanges,
    settings: NftSettings,
  ): Promise<BackstopFailure | undefined> {
    if (!this.#retry.isDue(this.#now())) return undefined;
    this.#base = baseFor({ ...settings, family: plan.family, view: plan.view });
    if (!changed) this.#reconciler.requestFull();
    const all = changed ?? new Set([...this.#reconciler.applied.keys(), ...plan.servicePorts.keys()]);
    const ids = [...all];
    const servicePorts = this.#without(refused, plan);
    const sync = (): Promise<string | undefined> => this.#sync(servicePorts, ids);
    // What went wrong with a change need not be wrong with a new one.
    const failure = (await sync()) === undefined ? undefined : await sync();
    if (failure === undefined) {
      this.#retry.succeeded();
      this.#reason = undefined;
      this.#isThere = true;
      return undefined;
    }
    const isNewReason = failure !== this.#reason;
    this.#reason = failure;
    await this.#giveUp();
    return { reason: failure, retryMs: this.#retry.failed(this.#now()), isNewReason };
  }

  /** Those that were refused stay as they were last written. */
  #without(refused: BackstopChanges['refused'], { servicePorts }: Plan): ServicePortPlans {
    if (refused.size === 0) return servicePorts;
    const { applied } = this.#reconciler;
    return new Map(
      [...servicePorts].flatMap(([id, port]) => {
        const kept = refused.has(id) ? applied.get(id) : port;
        return kept ? [[id, kept] as const] : [];
      }),
    );
  }

  /** After a sync of our own table that failed: what it was to serve no more is not held back any more either. */
  async release(plan: Plan, changed: Iterable<ServicePortId>): Promise<void> {
    if (!this.#isThere) return;
    const gone = [...changed].filter((id) => {
      const before = this.#reconciler.applied.get(id);
      const after = plan.servicePorts.get(id);
      return before && diffToEnd(heldFrontends(before), after ? heldFrontends(after) : []).removes.length > 0;
    });
    // As a whole, for the time being: the next sync brings back what is left.
    const left = new Map(this.#reconciler.applied);
    for (const id of gone) left.delete(id);
    if ((await this.#sync(left, gone)) !== undefined) this.#isThere = false;
  }

  /** Returns why it failed. */
  async #sync(servicePorts: ServicePortPlans, ids: readonly ServicePortId[]): Promise<string | undefined> {
    try {
      await this.#reconciler.sync({ servicePorts }, ids, this.#base);
      return undefined;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  async apply({ plan, ids, applied }: Changes<Base, WithServicePorts>): Promise<boolean> {
    await this.#change(plan.servicePorts, ids, applied);
    return true;
  }

  async resync({ plan, options, applied, unwritten }: Resync<Base, WithServicePorts>): Promise<void> {
    const { servicePorts } = plan;
    const isThere = await this.#client.isThere();
    if (isThere && unwritten) return this.#change(servicePorts, unwritten, applied);
    const { ruleset, fixed } = options;
    this.#hairpins = new ReferenceCounts();
    const begin: TableTransaction = [
      ...(isThere ? [{ kind: 'deleteTable' } as const] : []),
      { kind: 'addTable', isOwned: true },
      ...ruleset.sets.map((set): TableOperation => ({ kind: 'addSet', set })),
      ...addChains(ruleset.chains),
    ];
    await this.#committer.commit(begin);
    await this.#write([], fixed);
    await this.#change(servicePorts, servicePorts.keys(), new Map());
  }

  async #change(
    servicePorts: ServicePortPlans,
    ids: Iterable<ServicePortId>,
    applied: ServicePortPlans,
  ): Promise<void> {
    const removes: Element[] = [];
    const adds: Element[] = [];
    await forEachSliced(
      ids,
      (id) => {
        const [before, after] = [applied.get(id), servicePorts.get(id)];
        if (before === after) return;
        const change = diffToEnd(before ? heldFrontends(before) : [], after ? heldFrontends(after) : []);
        removes.push(...change.removes);
        adds.push(...change.adds);
        if (before) this.#hairpins.remove({ ...NO_ELEMENTS, counted: hairpinsOf(before) }, this.#now());
        if (after) this.#hairpins.add({ ...NO_ELEMENTS, counted: hairpinsOf(after) });
      },
      this.#timeSlice,
    );
    const { added, removed } = this.#hairpins.takeChanges();
    await this.#write([...removes, ...removed], [...adds, ...added]);
  }

  /** Deletions first: a frontend may move from one service port to another. */
  async #write(removes: readonly Element[], adds: readonly Element[]): Promise<void> {
    const sets = setsByName(this.#base.ruleset);
    const stream = new EditStream(this.#committer, sets);
    for (const some of slices(removes, this.#committer.chunk))
      await stream.add({ owner: undefined, removes: some, adds: [] });
    for (const some of slices(adds, this.#committer.chunk))
      await stream.add({ owner: undefined, removes: [], adds: some });
    await stream.flush();
  }

  /** One that holds back what it should not would be worse than none. */
  async #giveUp(): Promise<void> {
    this.#isThere = false;
    try {
      if (await this.#client.isThere()) await this.#client.commit([{ kind: 'deleteTable' }]);
    } catch {
      // It is deleted with the next table that is built.
    }
  }
}

function baseFor(options: TableOptions): Base {
  const ruleset = backstopRuleset(options);
  const sets = setsByName(ruleset);
  return { ruleset, fixed: fixedElements(options).filter(({ set }) => sets.has(set)) };
}

/**
 * The backstop's rules: they come after ours, so that they see the first packets that ours did nothing with. While ours
 * are there, that is none for a service. While another program has removed them, a new connection to a service is held back:
 * its first packet is dropped, the kernel keeps no conntrack entry of it, and the client sends it again a second later.
 */
const HELD = { frontends: 'frontends', ports: 'ports' } as const;
const HOLD_BACK = 'hold-back';

function backstopRuleset(options: RulesetOptions): Ruleset {
  return { sets: setsOf(options), chains: chainsOf(options) };
}

function setsOf({ view }: RulesetOptions): readonly TableSet[] {
  return [
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
    ...(view.nodePorts.ranges === 'all'
      ? []
      : [{ name: NFT_SETS.nodePortIPs, key: ['address'], comment: 'addresses for node ports' } as const]),
  ];
}

function chainsOf(options: RulesetOptions): readonly ChainSpec[] {
  const held: readonly RuleSpec[] = [
    nftRule(inSet(FRONTEND.address, HELD.frontends), { kind: 'drop' }),
    nftRule(inSet(FRONTEND.nodePort, HELD.ports), ...toNodePorts(options), { kind: 'drop' }),
  ];
  return [
    { name: HOLD_BACK, rules: held },
    hooked(NFT_CHAINS.prerouting, PRIORITIES.backstopDestination, [jumpRule(HOLD_BACK)]),
    hooked(NFT_CHAINS.output, PRIORITIES.backstopDestination, [jumpRule(HOLD_BACK)]),
    // Also for what was sent on just before the rules went.
    hooked(NFT_CHAINS.postrouting, PRIORITIES.backstopSource, masqueradeRules(options)),
  ];
}

/** Frontends that our rules send somewhere, for some clients at least: those they never leave alone. */
function heldFrontends({ frontends, protocol, name }: ServicePortPlan): readonly Element[] {
  const comment = ownerComment(name);
  return frontends
    .filter(({ routes }) => Object.values(routes).some(({ verdict }) => verdict === 'forward'))
    .map(({ address, port }) =>
      address === undefined
        ? { set: HELD.ports, key: { protocol, port }, comment }
        : { set: HELD.frontends, key: { address, protocol, port }, comment },
    );
}
