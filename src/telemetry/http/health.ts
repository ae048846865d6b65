/** The health of the proxy, and the pages that show it. */
import { FAMILIES, type Family } from '../../model/ip.ts';
import { type Answer, type BindOptions, BoundServer, json, NOT_FOUND, type Page, plain } from './server.ts';
import { NEVER, printTime, type Timestamp, type TimestampSource } from './timestamp.ts';

/** A resource of the API server. */
export interface ResourceHealth {
  readonly resource: string;
  /** At least once. Until then there is nothing to serve. */
  readonly hasListed: boolean;
  /** What its objects come as; unset before the first answer. */
  readonly encoding?: 'protobuf' | 'json';
  /** Since when it cannot be listed or watched, and why; unset when it can. */
  readonly since?: string;
  readonly reason?: string;
}

/** Not served at all. */
interface LeftOutHealth {
  readonly family: Family;
  readonly since: Timestamp;
  readonly reason: string;
  /** The machine does not have this family, which is no fault of the proxy; else nobody knows. */
  readonly isAnswered: boolean;
}

export type Health = ReturnType<HealthState['check']>;

interface HealthStateOptions {
  /** A change may wait for twice as long. */
  readonly syncPeriodMs: number;
  readonly now: TimestampSource;
  /** What is listed and watched. A failure is no reason to leave the node once all has been listed. */
  readonly resources?: () => readonly ResourceHealth[];
}

/**
 * Whether the proxy keeps up: a family that has had a change waiting for too long is unhealthy. A family that has never
 * reported is left out, so that a machine with one family is not blamed for the other.
 */
export class HealthState {
  readonly #timeoutNs: bigint;
  readonly #now: TimestampSource;
  readonly #lastUpdated = new Map<Family, Timestamp>();
  readonly #oldestPending = new Map<Family, Timestamp>();
  readonly #leftOut = new Map<Family, LeftOutHealth>();
  /** The Node object says that load balancers may send traffic here. */
  nodeEligible = false;
  readonly resources: () => readonly ResourceHealth[];

  constructor({ syncPeriodMs, now, resources = () => [] }: HealthStateOptions) {
    this.resources = resources;
    this.#timeoutNs = BigInt(Math.round(2 * syncPeriodMs * 1e6));
    this.#now = now;
  }

  /** A change waits to be written. Of several, the oldest counts. */
  queued(family: Family): void {
    if (!this.#oldestPending.has(family)) this.#oldestPending.set(family, this.#now());
  }

  /** The kernel has everything; or the family begins its work. */
  updated(family: Family): void {
    this.#leftOut.delete(family);
    this.#oldestPending.delete(family);
    this.#lastUpdated.set(family, this.#now());
  }

  /** The family cannot be served, until `updated`. */
  leftOut(family: Family, why: Pick<LeftOutHealth, 'reason' | 'isAnswered'>): void {
    const since = this.#leftOut.get(family)?.since ?? this.#now();
    this.#leftOut.set(family, { family, since, ...why });
  }

  /** The proxy's own health, whatever becomes of the node. */
  isHealthy(): boolean {
    return this.check().healthy;
  }

  check() {
    const checkedAt = this.#now();
    const families = FAMILIES.flatMap((family) => {
      const lastUpdated = this.#lastUpdated.get(family);
      return lastUpdated ? [{ family, lastUpdated, healthy: !this.#isLate(family, checkedAt) }] : [];
    });
    return {
      healthy: families.every(({ healthy }) => healthy),
      leftOut: [...this.#leftOut.values()],
      checkedAt,
      /** The newest of all families; `undefined`: none has reported. */
      lastUpdated: families.map((each) => each.lastUpdated).reduce(newer, undefined),
      families,
    };
  }

  #isLate(family: Family, at: Timestamp): boolean {
    const pending = this.#oldestPending.get(family);
    return pending !== undefined && at.steadyNs - pending.steadyNs >= this.#timeoutNs;
  }
}

function newer(a: Timestamp | undefined, b: Timestamp): Timestamp {
  return a === undefined || b.steadyNs > a.steadyNs ? b : a;
}

type HealthCode = '200' | '503';

interface HealthPageOptions {
  readonly state: HealthState;
  readonly now: TimestampSource;
  /** Counts the answers. */
  readonly counter?: ((probe: 'healthz' | 'livez', code: HealthCode) => void) | undefined;
}

/**
 * `/healthz` for load balancers, which should also leave a node that is being deleted; `/livez` for restarts; `/readyz`
 * for people: each part with what is wrong with it.
 */
export class HealthServer extends BoundServer {
  constructor(options: BindOptions & HealthPageOptions) {
    super(options, healthPage(options), {
      message: 'Healthz server failed',
      what: 'failed to start proxy healthz on',
    });
  }
}

export function healthPage({ state, now, counter }: HealthPageOptions): Page {
  return ({ path, query }) => {
    if (path === '/readyz') return readyAnswer(state, query.has('verbose'));
    if (path !== '/healthz' && path !== '/livez') return NOT_FOUND;
    const { nodeEligible } = state;
    const resources = state.resources();
    const health = state.check();
    const isHealthz = path === '/healthz';
    // A restart would not help where a family cannot be probed, so /livez succeeds.
    const mayServe =
      nodeEligible &&
      resources.every(({ hasListed }) => hasListed) &&
      health.leftOut.every(({ isAnswered }) => isAnswered);
    const code = health.healthy && (mayServe || !isHealthz) ? '200' : '503';
    counter?.(isHealthz ? 'healthz' : 'livez', code);
    return healthAnswer(code, health, now, isHealthz ? nodeEligible : undefined, resources);
  };
}

/** In the form of the API server's page of the same name. */
function readyAnswer(state: HealthState, isVerbose: boolean): Answer {
  const { families, leftOut } = state.check();
  const checks = [
    ...state.resources().map(({ resource, hasListed, since, reason = '' }) => {
      const why = since === undefined ? '' : ` since ${since}: ${reason}`;
      const text = hasListed ? `${resource} ok` : `${resource} failed: never listed${why}`;
      return {
        isGood: hasListed,
        text: hasListed && why !== '' ? `${text} (cannot be watched${why})` : text,
      };
    }),
    ...families.map(({ family, healthy }) => ({
      isGood: healthy,
      text: healthy ? `${family} ok` : `${family} failed: a change waits`,
    })),
    ...leftOut.map(({ family, reason, isAnswered }) => ({
      isGood: isAnswered,
      text: `${family} ${isAnswered ? 'not served' : 'failed'}: ${reason}`,
    })),
  ];
  const isGood = families.length > 0 && checks.every((check) => check.isGood);
  if (isGood && !isVerbose) return plain(200, 'ok');
  const lines = checks.map((check) => `[${check.isGood ? '+' : '-'}]${check.text}`);
  lines.push(`readyz check ${isGood ? 'passed' : 'failed'}`);
  return plain(isGood ? 200 : 503, `${lines.join('\n')}\n`);
}

function healthAnswer(
  code: HealthCode,
  { healthy, families, leftOut, checkedAt, lastUpdated }: Health,
  now: TimestampSource,
  nodeEligible: boolean | undefined,
  resources: readonly ResourceHealth[],
): Answer {
  const updated = lastUpdated ? printTime(lastUpdated) : NEVER;
  const failing = resources.filter(({ hasListed, since }) => !hasListed || since !== undefined);
  return json(
    Number(code),
    JSON.stringify({
      // Probes of old took an old time for a stuck proxy, so a healthy one is always up to date.
      lastUpdated: code === '200' ? printTime(now()) : updated,
      currentTime: printTime(checkedAt),
      ...(nodeEligible !== undefined && { nodeEligible }),
      healthy,
      ...part('status', families, (each) => [
        each.family,
        { lastUpdated: printTime(each.lastUpdated), healthy: each.healthy },
      ]),
      // kube-proxy's page does not have the last two.
      ...part('resources', failing, ({ resource, ...detail }) => [resource, detail]),
      ...part('leftOut', leftOut, ({ family, since, reason }) => [
        family,
        { since: printTime(since), reason },
      ]),
    }),
  );
}

/** A part of the page, where there is something to report. */
function part<T>(name: string, items: readonly T[], entry: (item: T) => readonly [string, object]): object {
  return items.length === 0 ? {} : { [name]: Object.fromEntries(items.map(entry)) };
}
