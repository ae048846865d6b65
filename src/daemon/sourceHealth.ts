/**
 * Which resources cannot be listed or watched, since when and why: for the health pages, the metrics and the log.
 *
 * Without it a proxy whose API server refuses one resource looks like one that has nothing to do.
 */
import type { Encoding } from '../sources/api/encoding.ts';
import type { ResourceHealth } from '../telemetry/http/health.ts';
import { type TimestampSource, printTime } from '../telemetry/http/timestamp.ts';
import type { JunctionMetrics } from '../telemetry/metrics/junctionMetrics.ts';
import type { Log } from '../log/log.ts';
import type { ResourceDiagnostic } from '../sources/api/diagnostics.ts';
import type { ApiFailure } from '../sources/api/failure.ts';
import type { Clock } from '../time/clock.ts';

interface SourceHealthOptions {
  readonly clock: Clock;
  readonly now: TimestampSource;
  readonly log: Log;
  readonly metrics: SourceMetrics;
}

export type SourceMetrics = Pick<JunctionMetrics, 'resourceUp' | 'resourceFailed'>;

interface ResourceState {
  readonly resource: string;
  hasListed: boolean;
  /** The watch cannot go on without a list. */
  needsList: boolean;
  failing: { readonly since: string; readonly sinceMs: number; failure: ApiFailure } | undefined;
  /** When a watch began that may yet fail with its first event. */
  resumedAt: number | undefined;
  /** Since the last watch began. */
  hasFailed: boolean;
  /** Of the last answer that it was listed or is watched with. */
  encoding: Encoding | undefined;
}

const REPEAT_MS = 60_000;
/** A watch that fails sooner has not been one: an expired version is said after the answer has begun. */
const PROVEN_MS = 5000;

export class SourceHealth {
  readonly #options: SourceHealthOptions;
  readonly #resources = new Map<string, ResourceState>();
  #cancelRepeat: (() => void) | undefined;
  #reconnects = 0;

  constructor(options: SourceHealthOptions) {
    this.#options = options;
  }

  note(diagnostic: ResourceDiagnostic): void {
    const state = this.#stateOf(diagnostic.resource);
    switch (diagnostic.kind) {
      case 'backingOff':
        this.#failed(state, diagnostic.failure, diagnostic.next);
        return;
      case 'resourceAbsent':
        state.hasListed = true;
        if (diagnostic.failure.kind === 'absent') this.#succeeded(state);
        return;
      case 'listEnded':
        state.hasListed = true;
        state.needsList = false;
        state.encoding = diagnostic.encoding;
        this.#succeeded(state);
        return;
      case 'watchEnded':
        // Before the first list there is nothing to reconnect: a server may refuse to stream it.
        if (diagnostic.failure && state.hasListed) state.hasFailed = true;
        return;
      case 'watchStarted':
        state.encoding = diagnostic.encoding;
        if (state.hasFailed) this.#reconnects++;
        state.hasFailed = false;
        if (!state.hasListed || state.needsList) return;
        state.resumedAt = this.#options.clock.now();
        this.#options.metrics.resourceUp(state.resource, true);
        return;
      default:
    }
  }

  resources(): readonly ResourceHealth[] {
    return [...this.#resources.values()].map(({ resource, hasListed, failing, resumedAt, encoding }) => ({
      resource,
      hasListed,
      ...(encoding !== undefined && { encoding }),
      ...(failing && resumedAt === undefined && { since: failing.since, reason: failing.failure.message }),
    }));
  }

  /** Watches that began again after a failure. */
  get reconnects(): number {
    return this.#reconnects;
  }

  close(): void {
    this.#cancelRepeat?.();
    this.#cancelRepeat = undefined;
  }

  #stateOf(resource: string): ResourceState {
    const known = this.#resources.get(resource);
    if (known) return known;
    const unknown = { failing: undefined, resumedAt: undefined, hasFailed: false, encoding: undefined };
    const state = { resource, hasListed: false, needsList: true, ...unknown };
    this.#resources.set(resource, state);
    this.#options.metrics.resourceUp(resource, false);
    return state;
  }

  #failed(state: ResourceState, failure: ApiFailure, next: 'list' | 'watch'): void {
    const { clock, now, log, metrics } = this.#options;
    const { resource } = state;
    metrics.resourceFailed(resource, failure.kind);
    if (next === 'list') state.needsList = true;
    state.hasFailed = true;
    const wasProven = state.resumedAt !== undefined && clock.now() - state.resumedAt > PROVEN_MS;
    if (wasProven) state.failing = undefined;
    state.resumedAt = undefined;
    metrics.resourceUp(resource, false);
    if (state.failing) {
      state.failing.failure = failure;
      return;
    }
    state.failing = { since: printTime(now()), sinceMs: clock.now(), failure };
    // An expired version is ordinary, and followed by a list. It is logged only if that fails too.
    if (failure.kind !== 'expired')
      log.warn('Watch or list failed; retrying', { resource, next, err: failure });
    this.#cancelRepeat ??= clock.schedule(REPEAT_MS, () => this.#repeat());
  }

  #succeeded(state: ResourceState): void {
    const { clock, log, metrics } = this.#options;
    const { resource, failing } = state;
    state.failing = undefined;
    state.resumedAt = undefined;
    metrics.resourceUp(resource, true);
    if (!failing) return;
    const seconds = Math.round((clock.now() - failing.sinceMs) / 1000);
    log.info('Listed again', { resource, failedSince: failing.since, seconds });
  }

  /** One line a minute for each reason, however many resources share it. */
  #repeat(): void {
    this.#cancelRepeat = undefined;
    const byReason = new Map<string, ResourceState[]>();
    let areAllProven = true;
    for (const state of this.#resources.values()) {
      if (!state.failing) continue;
      areAllProven = false;
      if (state.resumedAt !== undefined) {
        state.failing = undefined;
        continue;
      }
      const { kind, status } = state.failing.failure;
      const reason = `${kind} ${status ?? ''}`;
      byReason.set(reason, [...(byReason.get(reason) ?? []), state]);
    }
    for (const group of byReason.values()) this.#logFailing(group);
    if (!areAllProven) this.#cancelRepeat = this.#options.clock.schedule(REPEAT_MS, () => this.#repeat());
  }

  #logFailing(group: readonly ResourceState[]): void {
    const oldest = group
      .flatMap(({ failing }) => failing ?? [])
      .reduce((one, other) => (other.sinceMs < one.sinceMs ? other : one));
    const neverListed = group.filter(({ hasListed }) => !hasListed).map(({ resource }) => resource);
    this.#options.log.error('Cannot list or watch the API server; the rules stay as they are', {
      resources: group.map(({ resource }) => resource),
      ...(neverListed.length > 0 && { neverListed }),
      since: oldest.since,
      err: oldest.failure,
    });
  }
}
