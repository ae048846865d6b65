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
    this.#relay.isClosed = true;
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

type Emit = (events: ApiSourceEvents) => void;

/** Keeps events until it knows where they go, and then hands them on. */
class Relay implements ApiSourceEvents {
  /** By object; what comes last is told last: that nothing is missing, and what was wrong. */
  readonly #kept = new Map<string, Emit>();
  readonly #keptToTheEnd: Emit[] = [];
  #events: ApiSourceEvents | undefined;
  isClosed = false;

  service(key: ObjectKey, current: Service | undefined): void {
    if (this.#events) this.#events.service(key, current);
    else this.#kept.set(`Service ${key}`, (events) => events.service(key, current));
  }

  endpointSlice(key: ObjectKey, current: EndpointSlice | undefined): void {
    if (this.#events) this.#events.endpointSlice(key, current);
    else this.#kept.set(`EndpointSlice ${key}`, (events) => events.endpointSlice(key, current));
  }

  node(name: string, current: Node | undefined): void {
    if (this.#events) this.#events.node(name, current);
    else this.#kept.set(`Node ${name}`, (events) => events.node(name, current));
  }

  serviceCIDRs(cidrs: readonly Cidr[]): void {
    this.#afterObjects((events) => events.serviceCIDRs?.(cidrs));
  }

  synced(): void {
    this.#afterObjects((events) => events.synced());
  }

  report(problem: SourceProblem): void {
    this.#afterObjects((events) => events.report(problem));
  }

  received(): void {
    this.#events?.received?.();
  }

  #afterObjects(emit: Emit): void {
    if (this.#events) emit(this.#events);
    else this.#keptToTheEnd.push(emit);
  }

  /** What comes between two steps is kept too, and emitted in a later one: a map's iterator goes on to what is added. */
  *emitTo(events: ApiSourceEvents): Generator<undefined, void> {
    for (const [key, emit] of this.#kept) {
      if (this.isClosed) return;
      this.#kept.delete(key);
      emit(events);
      yield;
    }
    if (this.isClosed) return;
    this.#events = events;
    for (const emit of this.#keptToTheEnd.splice(0)) emit(events);
  }
}
