/**
 * A source that is asked before there is somebody to take its events: the API server sends its lists while the mode looks
 * at the kernel. What comes meanwhile is kept, of each object the last version.
 */
import type { Cidr } from '../model/ip.ts';
import type { EndpointSlice, Node, ObjectKey, Service } from '../model/objects.ts';
import type { Clock } from '../time/clock.ts';
import { runSliced, TimeSlice } from '../time/timeSlice.ts';
import type { ApiSourceEvents } from './api/apiSource.ts';
import type { Source, SourceProblem } from './source.ts';

/** Objects between two looks at the clock. */
const PER_LOOK = 16;

export class EarlySource implements Source {
  readonly #source: Source;
  readonly #clock: Clock;
  readonly #relay = new Relay();
  readonly #started: Promise<void>;

  /** The source starts now. */
  constructor(source: Source, clock: Clock) {
    this.#source = source;
    this.#clock = clock;
    this.#started = source.start(this.#relay);
    // Whoever calls `start` gets the failure; until then it must not end the process.
    this.#started.catch(() => undefined);
  }

  /** Resolves when everything that was kept is emitted. */
  async start(events: ApiSourceEvents): Promise<void> {
    await this.#started;
    await runSliced(this.#relay.emitTo(events), new TimeSlice(this.#clock), PER_LOOK);
  }

  stop(): Promise<void> {
    this.#relay.close();
    return this.#source.stop();
  }

  async refresh(): Promise<void> {
    await this.#source.refresh?.();
  }

  receiving(): readonly string[] {
    return this.#source.receiving?.() ?? [];
  }

  missing(service: ObjectKey, resourceVersion: string | undefined): string | undefined {
    return this.#source.missing?.(service, resourceVersion);
  }
}

/** Keeps events until it knows where they go, and then hands them on. */
class Relay implements ApiSourceEvents {
  readonly #nodes = new Map<string, Node | undefined>();
  readonly #services = new Map<ObjectKey, Service | undefined>();
  readonly #slices = new Map<ObjectKey, EndpointSlice | undefined>();
  readonly #problems: SourceProblem[] = [];
  #cidrs: readonly Cidr[] | undefined;
  #isSynced = false;
  #isClosed = false;
  #events: ApiSourceEvents | undefined;

  service(key: ObjectKey, current: Service | undefined): void {
    if (this.#events) this.#events.service(key, current);
    else this.#services.set(key, current);
  }

  endpointSlice(key: ObjectKey, current: EndpointSlice | undefined): void {
    if (this.#events) this.#events.endpointSlice(key, current);
    else this.#slices.set(key, current);
  }

  node(name: string, current: Node | undefined): void {
    if (this.#events) this.#events.node(name, current);
    else this.#nodes.set(name, current);
  }

  serviceCIDRs(cidrs: readonly Cidr[]): void {
    if (this.#events) this.#events.serviceCIDRs?.(cidrs);
    else this.#cidrs = cidrs;
  }

  synced(): void {
    if (this.#events) this.#events.synced();
    else this.#isSynced = true;
  }

  report(problem: SourceProblem): void {
    if (this.#events) this.#events.report(problem);
    else this.#problems.push(problem);
  }

  received(): void {
    this.#events?.received?.();
  }

  close(): void {
    this.#isClosed = true;
  }

  /** What comes between two steps is kept too, and emitted in a later one. */
  *emitTo(events: ApiSourceEvents): Generator<undefined, void> {
    const isLeft = (): boolean => this.#nodes.size + this.#services.size + this.#slices.size > 0;
    while (isLeft()) {
      yield* emitAll(
        this.#nodes,
        (name, node) => events.node(name, node),
        () => this.#isClosed,
      );
      yield* emitAll(
        this.#services,
        (key, service) => events.service(key, service),
        () => this.#isClosed,
      );
      yield* emitAll(
        this.#slices,
        (key, slice) => events.endpointSlice(key, slice),
        () => this.#isClosed,
      );
      if (this.#isClosed) return;
    }
    this.#events = events;
    if (this.#cidrs) events.serviceCIDRs?.(this.#cidrs);
    for (const problem of this.#problems.splice(0)) events.report(problem);
    if (this.#isSynced) events.synced();
  }
}

/** A map's iterator goes on to what is added meanwhile. */
function* emitAll<Key, Value>(
  kept: Map<Key, Value>,
  emit: (key: Key, value: Value) => void,
  isClosed: () => boolean,
): Generator<undefined, void> {
  for (const [key, value] of kept) {
    if (isClosed()) return;
    kept.delete(key);
    emit(key, value);
    yield;
  }
}
