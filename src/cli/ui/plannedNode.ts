/**
 * What the proxy of a node would do, planned in this process from a source that goes on changing, and written nowhere. Changes
 * are noted as the proxy notes them, for the stream of events.
 */
import type { Settings } from '../../config/settings.ts';
import { WatchFeed } from '../../daemon/api/feed.ts';
import type { FamilySubject } from '../../explain/subject.ts';
import type { ChangeRecord } from '../../explain/types.ts';
import { type Cidr, FAMILIES, type Family, familyOf } from '../../model/ip.ts';
import type { EndpointSlice, Node, ObjectKey, Service } from '../../model/objects.ts';
import { capacityOf } from '../../plan/capacity.ts';
import { PendingChanges } from '../../proxy/pendingChanges.ts';
import { Proxier } from '../../proxy/proxier.ts';
import type { SyncReport } from '../../proxy/report.ts';
import type { ApiSourceEvents } from '../../sources/api/apiSource.ts';
import type { SourceProblem } from '../../sources/source.ts';
import { systemClock } from '../../time/systemClock.ts';

interface PlannedNodeOptions {
  readonly settings: Settings;
  readonly onProblem: (problem: SourceProblem) => void;
}

export class PlannedNode implements ApiSourceEvents {
  readonly feed = new WatchFeed({ clock: systemClock, wallTime: Date.now });
  /** The first snapshot is planned. */
  readonly ready: Promise<void>;
  readonly #options: PlannedNodeOptions;
  readonly #proxiers: readonly Proxier[];
  #onReady: () => void = () => undefined;
  readonly #nodes = new Map<string, Node>();
  #serviceCidrs: readonly Cidr[] = [];
  #lastEventAt: number | undefined;
  #isSynced = false;
  #isWanted = false;
  #planning: Promise<void> | undefined;
  #lastId = 0;

  constructor(options: PlannedNodeOptions) {
    this.#options = options;
    this.#proxiers = FAMILIES.map((family) => this.#open(family));
    this.ready = new Promise((resolve) => {
      this.#onReady = resolve;
    });
  }

  get isPlanning(): boolean {
    return this.#planning !== undefined;
  }

  /** Its Node object, where there is one. */
  get currentNode(): Node | undefined {
    return this.#nodes.get(this.#options.settings.nodeName);
  }

  /** All that the source has. */
  get nodes(): readonly Node[] {
    return [...this.#nodes.values()];
  }

  get serviceCidrs(): readonly Cidr[] {
    return this.#serviceCidrs;
  }

  /** Milliseconds since the epoch. */
  get lastEventAt(): number | undefined {
    return this.#lastEventAt;
  }

  get families(): readonly { readonly subject: FamilySubject; readonly services: number }[] {
    return this.#proxiers.map((proxier) => ({
      subject: this.#subjectOf(proxier),
      services: proxier.serviceCount,
    }));
  }

  service(key: ObjectKey, current: Service | undefined): void {
    this.#each((proxier) => proxier.onService(key, current));
  }

  endpointSlice(key: ObjectKey, current: EndpointSlice | undefined): void {
    this.#each((proxier) => proxier.onEndpointSlice(key, current));
  }

  node(name: string, current: Node | undefined): void {
    if (current) this.#nodes.set(name, current);
    else this.#nodes.delete(name);
    if (name !== this.#options.settings.nodeName) return;
    this.#each((proxier) => proxier.onNode(current));
  }

  serviceCIDRs(cidrs: readonly Cidr[]): void {
    this.#serviceCidrs = cidrs;
  }

  report(problem: SourceProblem): void {
    this.#options.onProblem(problem);
  }

  synced(): void {
    this.#isSynced = true;
    for (const proxier of this.#proxiers) proxier.onSynced();
    this.#request();
  }

  #open(family: Family): Proxier {
    const { settings } = this.#options;
    const pendingChanges = new PendingChanges({
      family,
      clock: systemClock,
      wallTime: Date.now,
      nextId: () => ++this.#lastId,
      onRecord: (record) => this.feed.emit({ kind: 'change', ...unwritten(record) }),
    });
    const capacity = capacityOf(settings.mode, family);
    return new Proxier({ family, settings, writer: NO_KERNEL, capacity, pendingChanges });
  }

  #subjectOf({ family, plan, inputs }: Proxier): FamilySubject {
    const addresses = (this.currentNode?.ips ?? []).filter((ip) => familyOf(ip) === family);
    return { family, plan, host: { addresses }, refused: new Map(), ...inputs };
  }

  #each(update: (proxier: Proxier) => boolean): void {
    this.#lastEventAt = Date.now();
    for (const proxier of this.#proxiers) if (update(proxier)) this.#isWanted = true;
    if (this.#isWanted) this.#request();
  }

  #request(): void {
    this.#isWanted = true;
    if (this.#isSynced) this.#planning ??= this.#plan().finally(() => (this.#planning = undefined));
  }

  /** What comes at one time, of one reading of the files, is planned together. */
  async #plan(): Promise<void> {
    await Promise.resolve();
    while (this.#isWanted) {
      this.#isWanted = false;
      for (const proxier of this.#proxiers)
        for (let turn: 'first' | 'next' | undefined = 'first'; turn; )
          turn = (await proxier.sync(turn))?.isPartial === true ? 'next' : undefined;
    }
    this.#onReady();
  }
}

/** Here is no kernel that a change could be in. */
function unwritten(record: ChangeRecord): ChangeRecord {
  const { id, family, service, causes, effects, seenAt, plannedAt } = record;
  return { id, family, service, causes, effects, seenAt, plannedAt };
}

const NOTHING: SyncReport = {
  kind: 'nothing',
  commits: 0,
  objects: 0,
  refused: new Map(),
  repaired: [],
  retryAfterMs: undefined,
  counts: {},
};

const NO_KERNEL = {
  sync: () => Promise.resolve(NOTHING),
  requestFull: (): void => {},
};
