/**
 * A second table, that no other program can change: the kernel lets only the socket that made it, and removes it with that
 * socket. `nft flush ruleset` leaves it alone, and as long as one chain that rewrites addresses is there, the kernel goes
 * on rewriting the packets of open connections. New ones are held back until our rules are there again
 * (`backstopRules.ts`).
 *
 * All works without it, so it is never in the way: what fails here is tried again later.
 */
import { deepEqual } from '../../../model/equal.ts';
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { Plan, ServicePortPlan } from '../../../plan/types.ts';
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
  readonly isNews: boolean;
}

interface BackstopChanges {
  /** Service ports that may have changed; `undefined`: any, and perhaps it does not stand any more. */
  readonly changed: Iterable<ServicePortId> | undefined;
  /** Those that our own table could not take: what it had of them before stays in force. */
  readonly refused: { has(id: ServicePortId): boolean };
}

interface BackstopOptions {
  readonly client: BackstopClient;
  readonly now: () => number;
  readonly timeSlice?: TimeSlice;
}

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;
/** Timers may come a little early. */
const EARLY_MS = 10;

interface Standing {
  readonly ruleset: Ruleset;
  /** Elements that no service has a part in. */
  readonly fixed: readonly Element[];
}

export class Backstop {
  readonly #client: BackstopClient;
  readonly #committer: Committer;
  readonly #timeSlice: TimeSlice | undefined;
  readonly #now: () => number;
  readonly #written = new Map<ServicePortId, ServicePortPlan>();
  #hairpins = new ReferenceCounts();
  /** As it is in the kernel; `undefined` where that is not known. */
  #standing: Standing | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  #notBefore = Number.NEGATIVE_INFINITY;
  #isDoubtful = false;
  /** Of the last failure, if it does not stand. */
  #reason: string | undefined;
  #refused: BackstopChanges['refused'] = new Set();

  constructor({ client, now, timeSlice }: BackstopOptions) {
    this.#client = client;
    this.#committer = new Committer(client, now);
    this.#timeSlice = timeSlice;
    this.#now = now;
  }

  /** Its socket may have gone, and taken it along: the next sync looks. */
  doubt(): void {
    this.#isDoubtful = true;
  }

  /** After each sync of our own table. Returns what went wrong. */
  async sync(
    plan: Plan,
    { changed, refused }: BackstopChanges,
    settings: NftSettings,
  ): Promise<BackstopFailure | undefined> {
    const options = { ...settings, family: plan.family, view: plan.view };
    this.#refused = refused;
    if (!this.#standing && this.#now() < this.#notBefore - EARLY_MS) return undefined;
    const mustLook = !changed || !this.#standing || this.#isDoubtful;
    const problem = await this.#try(() =>
      mustLook ? this.#stand(plan, options) : this.#follow(plan, changed),
    );
    // What went wrong with a change need not be wrong with a new one.
    const failure = problem === undefined ? undefined : await this.#try(() => this.#stand(plan, options));
    if (failure === undefined) {
      this.#pauseMs = FIRST_PAUSE_MS;
      this.#reason = undefined;
      return undefined;
    }
    const told = { reason: failure, retryMs: this.#pauseMs, isNews: failure !== this.#reason };
    this.#reason = failure;
    await this.#giveUp();
    return told;
  }

  /** After a sync of our own table that failed: what it was to serve no more is not held back any more either. */
  async release(plan: Plan, changed: Iterable<ServicePortId>): Promise<void> {
    if (!this.#standing) return;
    const gone = [...changed].filter((id) => {
      const before = this.#written.get(id);
      const after = plan.servicePorts.get(id);
      return before && diffToEnd(heldFrontends(before), after ? heldFrontends(after) : []).removes.length > 0;
    });
    // As a whole, for the time being: the next sync brings back what is left.
    await this.#try(() => this.#follow({ servicePorts: new Map() }, gone));
  }

  /** Returns why it failed. */
  async #try(work: () => Promise<void>): Promise<string | undefined> {
    try {
      await work();
      return undefined;
    } catch (error) {
      this.#standing = undefined;
      return error instanceof Error ? error.message : String(error);
    }
  }

  async #stand(plan: Plan, options: TableOptions): Promise<void> {
    this.#isDoubtful = false;
    const ruleset = backstopRuleset(options);
    const sets = setsByName(ruleset);
    const wanted = { ruleset, fixed: fixedElements(options).filter(({ set }) => sets.has(set)) };
    const isThere = await this.#client.isThere();
    if (isThere && deepEqual(wanted, this.#standing))
      await this.#follow(plan, new Set([...this.#written.keys(), ...plan.servicePorts.keys()]));
    else await this.#build(plan, wanted, isThere);
  }

  async #build(plan: Plan, wanted: Standing, isThere: boolean): Promise<void> {
    const { ruleset, fixed } = wanted;
    this.#standing = undefined;
    this.#written.clear();
    this.#hairpins = new ReferenceCounts();
    const begin: TableTransaction = [
      ...(isThere ? [{ kind: 'deleteTable' } as const] : []),
      { kind: 'addTable', isOwned: true },
      ...ruleset.sets.map((set): TableOperation => ({ kind: 'addSet', set })),
      ...addChains(ruleset.chains),
    ];
    await this.#committer.commit(begin);
    this.#standing = wanted;
    await this.#write([], fixed);
    await this.#follow(plan, plan.servicePorts.keys());
  }

  async #follow(plan: Pick<Plan, 'servicePorts'>, ids: Iterable<ServicePortId>): Promise<void> {
    const removes: Element[] = [];
    const adds: Element[] = [];
    await forEachSliced(
      ids,
      (id) => {
        const [before, after] = [this.#written.get(id), plan.servicePorts.get(id)];
        if (before === after || (after && this.#refused.has(id))) return;
        const change = diffToEnd(before ? heldFrontends(before) : [], after ? heldFrontends(after) : []);
        removes.push(...change.removes);
        adds.push(...change.adds);
        this.#count(before, after);
        if (after) this.#written.set(id, after);
        else this.#written.delete(id);
      },
      this.#timeSlice,
    );
    const { added, removed } = this.#hairpins.takeChanges();
    await this.#write([...removes, ...removed], [...adds, ...added]);
  }

  #count(before: ServicePortPlan | undefined, after: ServicePortPlan | undefined): void {
    if (before) this.#hairpins.remove({ ...NO_ELEMENTS, counted: hairpinsOf(before) }, this.#now());
    if (after) this.#hairpins.add({ ...NO_ELEMENTS, counted: hairpinsOf(after) });
  }

  /** All that goes first: a frontend may go from one service port to another. */
  async #write(removes: readonly Element[], adds: readonly Element[]): Promise<void> {
    const sets = setsByName(this.#standing?.ruleset ?? { sets: [] });
    const stream = new EditStream(this.#committer, sets);
    for (const some of slices(removes, this.#committer.chunk))
      await stream.add({ owner: undefined, removes: some, adds: [] });
    for (const some of slices(adds, this.#committer.chunk))
      await stream.add({ owner: undefined, removes: [], adds: some });
    await stream.flush();
  }

  /** One that holds back what it should not would be worse than none. */
  async #giveUp(): Promise<void> {
    this.#notBefore = this.#now() + this.#pauseMs;
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs * 2);
    await this.#try(async () => {
      if (await this.#client.isThere()) await this.#client.commit([{ kind: 'deleteTable' }]);
    });
  }
}

/**
 * The backstop's rules: they come after ours, so that they see the first packets that ours did nothing with. While ours
 * are there, that is none for a service. While another program has removed them, a new connection to a service is held back:
 * its first packet is dropped, the kernel remembers nothing of it, and the client sends it again a second later.
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
