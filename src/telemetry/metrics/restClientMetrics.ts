/**
 * Requests to the API server, under the names, labels and buckets that client-go's clients have. A watch is counted when
 * it is answered, and is not measured: it has no end. A streaming list is measured, other than there: it is a list.
 */
import { X509Certificate } from 'node:crypto';
import type { MetricFamily } from './exposition.ts';
import { type Collector, Counter, Gauge, Histogram, type Registry } from './instruments.ts';

const DURATION_BUCKETS: readonly number[] = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];
/** 64 bytes to 16 MiB. */
const SIZE_BUCKETS: readonly number[] = [
  64, 256, 512, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216,
];
/** Ten minutes to four years. */
const ROTATION_BUCKETS: readonly number[] = [
  600, 1800, 3600, 14_400, 86_400, 604_800, 2_592_000, 7_776_000, 15_552_000, 31_104_000, 124_416_000,
];

/** One attempt, when its headers have come or it has failed. */
export interface RestRequest {
  readonly method: string;
  /** `10.0.0.1:6443` */
  readonly host: string;
  /** `<error>` where there was no answer. */
  readonly code: string;
  /** Not the first attempt. */
  readonly isRetry: boolean;
  /** How long the client's own rate limit held it back; unset: not limited, as a watch. */
  readonly limitedMs?: number | undefined;
  /** Of the body; unset for a watch. */
  readonly sentBytes?: number | undefined;
}

/** A whole request with all its attempts, when its answer has been read. */
export interface RestAnswer {
  readonly method: string;
  readonly host: string;
  readonly durationMs: number;
  /** Unset: there was no answer, or it was cut off. */
  readonly receivedBytes?: number | undefined;
}

export type PluginOutcome =
  | { readonly kind: 'ran'; readonly code: number }
  | { readonly kind: 'failed'; readonly isMissing: boolean };

type ByVerb = 'host' | 'verb';

export class RestClientMetrics {
  readonly #requests: Counter<'code' | 'host' | 'method'>;
  readonly #retries: Counter<'code' | ByVerb>;
  readonly #durations: Histogram<ByVerb>;
  readonly #limited: Histogram<ByVerb>;
  readonly #sent: Histogram<ByVerb>;
  readonly #received: Histogram<ByVerb>;
  readonly #pluginCalls: Counter<'call_status' | 'code'>;
  readonly #rotationAge: Histogram;
  readonly #transports: Gauge;
  readonly #transportCalls: Counter<'result'>;
  readonly #wallTime: () => number;
  #pluginCertificate: { readonly pem: string; readonly from: number; readonly until: number } | undefined;

  /** `wallTime`: milliseconds since the epoch. */
  constructor(registry: Registry, wallTime: () => number = Date.now) {
    this.#wallTime = wallTime;
    const make = maker(registry);
    this.#requests = make.counter(
      'requests_total',
      'Number of HTTP requests, partitioned by status code, method, and host.',
      ['code', 'host', 'method'],
    );
    this.#retries = make.counter(
      'request_retries_total',
      'Number of request retries, partitioned by status code, verb, and host.',
      ['code', 'host', 'verb'],
    );
    this.#durations = make.byVerb(
      'request_duration_seconds',
      'Request latency in seconds. Broken down by verb, and host.',
      DURATION_BUCKETS,
    );
    this.#limited = make.byVerb(
      'rate_limiter_duration_seconds',
      'Client side rate limiter latency in seconds. Broken down by verb, and host.',
      DURATION_BUCKETS,
    );
    this.#sent = make.byVerb(
      'request_size_bytes',
      'Request size in bytes. Broken down by verb and host.',
      SIZE_BUCKETS,
    );
    this.#received = make.byVerb(
      'response_size_bytes',
      'Response size in bytes. Broken down by verb and host.',
      SIZE_BUCKETS,
    );
    this.#pluginCalls = make.counter(
      'exec_plugin_call_total',
      'Number of calls to an exec plugin, by how they ended (no_error, plugin_execution_error, plugin_not_found_error, client_internal_error) and exit code.',
      ['call_status', 'code'],
    );
    this.#rotationAge = registry.add(
      new Histogram({
        ...named(
          'exec_plugin_certificate_rotation_age',
          'Histogram of the number of seconds that the last client certificate of an exec plugin lived before it was replaced. Without data where no plugin provides one.',
        ),
        buckets: ROTATION_BUCKETS,
      }),
    );
    registry.add(this.#ttl());
    this.#transports = registry.add(
      new Gauge({
        ...named('transport_cache_entries', 'Number of transport entries in the internal cache.'),
      }),
    );
    this.#transportCalls = make.counter(
      'transport_create_calls_total',
      'Number of calls to get a new transport, partitioned by the result of the operation; miss: created and added to the cache.',
      ['result'],
    );
  }

  requested({ method, host, code, isRetry, limitedMs, sentBytes }: RestRequest): void {
    const byVerb = { host, verb: method };
    this.#requests.add({ code, host, method });
    if (isRetry) this.#retries.add({ code, ...byVerb });
    if (limitedMs !== undefined) this.#limited.observe(byVerb, limitedMs / 1000);
    if (sentBytes !== undefined) this.#sent.observe(byVerb, sentBytes);
  }

  answered({ method, host, durationMs, receivedBytes }: RestAnswer): void {
    const byVerb = { host, verb: method };
    this.#durations.observe(byVerb, durationMs / 1000);
    if (receivedBytes !== undefined) this.#received.observe(byVerb, receivedBytes);
  }

  /** Connections are made with the certificates that hold from now on. */
  transportCreated(): void {
    this.#transports.set({}, 1);
    this.#transportCalls.add({ result: 'miss' });
  }

  pluginCalled(outcome: PluginOutcome): void {
    this.#pluginCalls.add(statusOf(outcome));
  }

  /** The client certificate that a plugin gave; `undefined`: a token alone. */
  pluginCertificate(pem: string | undefined): void {
    const before = this.#pluginCertificate;
    if (before?.pem === pem) return;
    if (before) this.#rotationAge.observe({}, (this.#wallTime() - before.from) / 1000);
    this.#pluginCertificate = pem === undefined ? undefined : lifetimeOf(pem);
  }

  #ttl(): Collector {
    const { name, help } = named(
      'exec_plugin_ttl_seconds',
      'Seconds until the client certificate of the exec plugin expires, negative if it has; +Inf where no plugin provides one.',
    );
    return {
      collect: (): readonly MetricFamily[] => {
        const until = this.#pluginCertificate?.until ?? Number.POSITIVE_INFINITY;
        const value = (until - this.#wallTime()) / 1000;
        return [{ name, help, type: 'gauge', samples: [{ suffix: '', labels: [], value }] }];
      },
    };
  }
}

/** Exit codes and words as client-go has them. */
function statusOf(outcome: PluginOutcome): { readonly call_status: string; readonly code: string } {
  if (outcome.kind === 'failed')
    return { code: '1', call_status: outcome.isMissing ? 'plugin_not_found_error' : 'client_internal_error' };
  const call_status = outcome.code === 0 ? 'no_error' : 'plugin_execution_error';
  return { code: String(outcome.code), call_status };
}

/** Whether it is any good is told by whoever uses it. */
function lifetimeOf(pem: string): { pem: string; from: number; until: number } | undefined {
  try {
    const { validFrom, validTo } = new X509Certificate(pem);
    return { pem, from: Date.parse(validFrom), until: Date.parse(validTo) };
  } catch {
    return undefined;
  }
}

function named(name: string, help: string): { readonly name: string; readonly help: string } {
  return { name: `rest_client_${name}`, help: `[ALPHA] ${help}` };
}

function maker(registry: Registry) {
  return {
    counter: <L extends string>(name: string, help: string, labels: readonly L[]): Counter<L> =>
      registry.add(new Counter({ ...named(name, help), labels })),
    byVerb: (name: string, help: string, buckets: readonly number[]): Histogram<ByVerb> =>
      registry.add(new Histogram({ ...named(name, help), labels: ['host', 'verb'], buckets })),
  };
}
