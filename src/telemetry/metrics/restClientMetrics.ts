/**
 * Requests to the API server, under the names, labels and buckets that client-go's clients have. A watch is counted when
 * it is answered, and is not measured: it has no end. A streaming list is measured, other than there: it is a list.
 */
import { X509Certificate } from 'node:crypto';
import { readings } from './exposition.ts';
import { counter, gauge, histogram, type Instruments, register, type Registry } from './instruments.ts';

const DURATION_BUCKETS: readonly number[] = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];
/** 64 bytes to 16 MiB. */
const SIZE_BUCKETS: readonly number[] = [
  64, 256, 512, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216,
];
/** Ten minutes to four years. */
const ROTATION_BUCKETS: readonly number[] = [
  600, 1800, 3600, 14_400, 86_400, 604_800, 2_592_000, 7_776_000, 15_552_000, 31_104_000, 124_416_000,
];

const BY_VERB = ['host', 'verb'] as const;
const METRICS = {
  requests_total: counter('Number of HTTP requests, partitioned by status code, method, and host.', [
    'code',
    'host',
    'method',
  ]),
  request_retries_total: counter('Number of request retries, partitioned by status code, verb, and host.', [
    'code',
    'host',
    'verb',
  ]),
  request_duration_seconds: histogram(
    'Request latency in seconds. Broken down by verb, and host.',
    BY_VERB,
    DURATION_BUCKETS,
  ),
  rate_limiter_duration_seconds: histogram(
    'Client side rate limiter latency in seconds. Broken down by verb, and host.',
    BY_VERB,
    DURATION_BUCKETS,
  ),
  request_size_bytes: histogram(
    'Request size in bytes. Broken down by verb and host.',
    BY_VERB,
    SIZE_BUCKETS,
  ),
  response_size_bytes: histogram(
    'Response size in bytes. Broken down by verb and host.',
    BY_VERB,
    SIZE_BUCKETS,
  ),
  exec_plugin_call_total: counter(
    'Number of calls to an exec plugin, by how they ended (no_error, plugin_execution_error, plugin_not_found_error, client_internal_error) and exit code.',
    ['call_status', 'code'],
  ),
  exec_plugin_certificate_rotation_age: histogram(
    'Histogram of the number of seconds that the last client certificate of an exec plugin lived before it was replaced. Without data where no plugin provides one.',
    [],
    ROTATION_BUCKETS,
  ),
  transport_cache_entries: gauge('Number of transport entries in the internal cache.'),
  transport_create_calls_total: counter(
    'Number of calls to get a new transport, partitioned by the result of the operation; miss: created and added to the cache.',
    ['result'],
  ),
};

/** One attempt, when its headers have arrived or it has failed. */
interface RestRequest {
  readonly method: string;
  /** `10.0.0.1:6443` */
  readonly host: string;
  /** `<error>` where there was no answer. */
  readonly code: string;
  readonly isRetry: boolean;
  /** How long the client's own rate limit held it back; unset: not limited, as a watch. */
  readonly limitedMs?: number | undefined;
  /** Of the body; unset for a watch. */
  readonly sentBytes?: number | undefined;
}

/** A whole request with all its attempts, when its answer has been read. */
interface RestAnswer {
  readonly method: string;
  readonly host: string;
  readonly durationMs: number;
  /** Unset: there was no answer, or it was cut off. */
  readonly receivedBytes?: number | undefined;
}

type PluginOutcome =
  | { readonly kind: 'ran'; readonly code: number }
  | { readonly kind: 'failed'; readonly isMissing: boolean };

export class RestClientMetrics {
  readonly #metrics: Instruments<typeof METRICS>;
  readonly #wallTime: () => number;
  #pluginCertificate: { readonly pem: string; readonly from: number; readonly until: number } | undefined;

  /** `wallTime`: milliseconds since the epoch. */
  constructor(registry: Registry, wallTime: () => number = Date.now) {
    this.#wallTime = wallTime;
    this.#metrics = register(registry, METRICS, { prefix: 'rest_client_', stability: '[ALPHA] ' });
    registry.add({
      collect: () =>
        readings({
          rest_client_exec_plugin_ttl_seconds: [
            '[ALPHA] Seconds until the client certificate of the exec plugin expires, negative if it has; +Inf where no plugin provides one.',
            ((this.#pluginCertificate?.until ?? Number.POSITIVE_INFINITY) - wallTime()) / 1000,
          ],
        }),
    });
  }

  requested({ method, host, code, isRetry, limitedMs, sentBytes }: RestRequest): void {
    const byVerb = { host, verb: method };
    this.#metrics.requests_total.add({ code, host, method });
    if (isRetry) this.#metrics.request_retries_total.add({ code, ...byVerb });
    if (limitedMs !== undefined)
      this.#metrics.rate_limiter_duration_seconds.observe(byVerb, limitedMs / 1000);
    if (sentBytes !== undefined) this.#metrics.request_size_bytes.observe(byVerb, sentBytes);
  }

  answered({ method, host, durationMs, receivedBytes }: RestAnswer): void {
    const byVerb = { host, verb: method };
    this.#metrics.request_duration_seconds.observe(byVerb, durationMs / 1000);
    if (receivedBytes !== undefined) this.#metrics.response_size_bytes.observe(byVerb, receivedBytes);
  }

  /** From now on connections are made with other certificates. */
  transportCreated(): void {
    this.#metrics.transport_cache_entries.set({}, 1);
    this.#metrics.transport_create_calls_total.add({ result: 'miss' });
  }

  pluginCalled(outcome: PluginOutcome): void {
    this.#metrics.exec_plugin_call_total.add(statusOf(outcome));
  }

  /** The client certificate that a plugin gave; `undefined`: a token alone. */
  pluginCertificate(pem: string | undefined): void {
    const before = this.#pluginCertificate;
    if (before?.pem === pem) return;
    if (before)
      this.#metrics.exec_plugin_certificate_rotation_age.observe({}, (this.#wallTime() - before.from) / 1000);
    this.#pluginCertificate = pem === undefined ? undefined : lifetimeOf(pem);
  }
}

/** Exit codes and words as client-go has them. */
function statusOf(outcome: PluginOutcome): { readonly call_status: string; readonly code: string } {
  if (outcome.kind === 'failed')
    return { code: '1', call_status: outcome.isMissing ? 'plugin_not_found_error' : 'client_internal_error' };
  const call_status = outcome.code === 0 ? 'no_error' : 'plugin_execution_error';
  return { code: String(outcome.code), call_status };
}

/** Whether the certificate is any good is reported by the TLS connection that uses it. */
function lifetimeOf(pem: string): { pem: string; from: number; until: number } | undefined {
  try {
    const { validFrom, validTo } = new X509Certificate(pem);
    return { pem, from: Date.parse(validFrom), until: Date.parse(validTo) };
  } catch {
    return undefined;
  }
}
