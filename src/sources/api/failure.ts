/** Why a request, or the stream that it opened, came to nothing; sorted by what can be done about it. */
import { type ErrorCode, type ErrorOptions, isJunctionError, JunctionError } from '../../errors.ts';
import { isMap, ownField } from '../../text/cursor.ts';
import { quote } from '../../text/printable.ts';

export type FailureKind =
  /** The resourceVersion, or the continue token, is older than what the server keeps. */
  | 'expired'
  /** The resourceVersion is newer than what this server has seen. */
  | 'ahead'
  /** The server does not take such a request. */
  | 'unsupported'
  | 'unauthorized'
  | 'forbidden'
  | 'absent'
  | 'busy'
  | 'serverError'
  | 'unreachable'
  | 'untrusted'
  /** Cut off, or not JSON. */
  | 'malformed'
  /** The connection is there, but nothing comes. */
  | 'silent'
  | 'credentials';

interface FailureOptions extends ErrorOptions {
  readonly status?: ApiStatus | undefined;
  readonly retryAfterMs?: number | undefined;
}

export class ApiFailure extends JunctionError {
  readonly kind: FailureKind;
  readonly status: ApiStatus | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(code: ErrorCode, kind: FailureKind, message: string, options: FailureOptions = {}) {
    super(code, message, options);
    this.kind = kind;
    this.status = options.status;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** A listener threw on a change. That is no failure of the API server, and trying again would hide it. */
export class ListenerError extends Error {
  override readonly name = 'ListenerError';
  constructor(cause: unknown) {
    super(`a listener failed: ${messageOf(cause)}`, { cause });
  }
}

export function malformedAnswer(message: string, cause?: unknown): ApiFailure {
  return new ApiFailure('API_MALFORMED', 'malformed', message, { cause });
}

export function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw malformedAnswer(`${what} is not JSON`, error);
  }
}

export function silent(message: string): ApiFailure {
  return new ApiFailure('API_UNREACHABLE', 'silent', message);
}

export function endedAtOnce(resource: string): ApiFailure {
  const message = `watching ${resource}: it ended as soon as it had begun`;
  return new ApiFailure('API_UNREACHABLE', 'unreachable', message);
}

/** etcd was restored from a backup, or another cluster answers: what we know is of another history. */
export function wentBack(resource: string, from: string, to: string): ApiFailure {
  const message = `watching ${resource}: the resourceVersion went back from ${from} to ${to}`;
  return new ApiFailure('API_MALFORMED', 'ahead', message);
}

export function failureOfStatus(status: ApiStatus, what: string, retryAfterMs?: number): ApiFailure {
  const kind = kindOfStatus(status);
  const text = status.message === '' ? '' : `: ${quoteMessage(status.message)}`;
  const message = `${what}: the API server answered ${status.code}${status.reason && ` ${status.reason}`}${text}`;
  return new ApiFailure('API_REFUSED', kind, message, {
    status,
    retryAfterMs: retryAfterMs ?? status.retryAfterMs,
    hint: HINTS[kind],
  });
}

const WRONG_SERVER =
  'Junction tries again. Check that server in the kubeconfig, or --master, is the address of an API server, https:// included.';

const HINTS: Partial<Readonly<Record<FailureKind, string>>> = {
  unauthorized:
    'The API server does not know these credentials. Check the token or client certificate, and its expiry.',
  forbidden: 'Bind the ClusterRole system:node-proxier to the user or service account that Junction runs as.',
  absent: WRONG_SERVER,
  unsupported: WRONG_SERVER,
  serverError: "Junction tries again. Look into the API server's log, and etcd's.",
  busy: 'The API server is overloaded; Junction waits as long as it asks.',
};

const MOST_MESSAGE = 300;

function quoteMessage(message: string): string {
  const oneLine = message.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ');
  return oneLine.length > MOST_MESSAGE ? `${oneLine.slice(0, MOST_MESSAGE)}…` : oneLine;
}

function kindOfStatus({ code, reason, message, causes }: ApiStatus): FailureKind {
  if (code === 410 || reason === 'Expired' || reason === 'Gone') return 'expired';
  const isAhead =
    causes.some((cause) => cause === 'ResourceVersionTooLarge' || cause === 'Too large resource version') ||
    (code === 504 && message.includes('Too large resource version'));
  if (isAhead) return 'ahead';
  if (code === 401) return 'unauthorized';
  if (code === 403) return 'forbidden';
  if (code === 404) return 'absent';
  if (code === 429) return 'busy';
  if (code === 408 || code >= 500) return 'serverError';
  return 'unsupported';
}

/** What the network, TLS or the HTTP parser threw. */
export function failureOfError(error: unknown, what: string): ApiFailure {
  if (error instanceof ApiFailure) return error;
  if (isJunctionError(error)) {
    const { code, message, hint, detail } = error;
    return new ApiFailure(code, 'credentials', message, { hint, detail, cause: error });
  }
  const code = codeOf(error);
  const tls =
    TLS_PROBLEMS[code] ?? (/^ERR_(?:TLS|SSL)_|^EPROTO$|CERT/.test(code) ? messageOf(error) : undefined);
  if (tls !== undefined) {
    const message = `${what}: cannot trust the API server: ${quoteMessage(tls)}`;
    return new ApiFailure('API_UNTRUSTED', 'untrusted', message, { cause: error });
  }
  if (code.startsWith('HPE_')) return malformedAnswer(`${what}: the answer is not HTTP (${code})`, error);
  const message = messageOf(error);
  // Most messages of the network have the code in them: connect ECONNREFUSED 192.0.2.1:6443.
  const suffix = message.includes(code) ? '' : ` (${code})`;
  const reason = code === '' ? quote(message) : `${quoteMessage(message)}${suffix}`;
  return new ApiFailure('API_UNREACHABLE', 'unreachable', `${what}: ${reason}`, { cause: error });
}

const OTHER_AUTHORITY =
  'its certificate is not signed by the authority that was given (certificate-authority)';

const TLS_PROBLEMS: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet; check the clocks',
  SELF_SIGNED_CERT_IN_CHAIN: OTHER_AUTHORITY,
  DEPTH_ZERO_SELF_SIGNED_CERT: OTHER_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: OTHER_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: OTHER_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: OTHER_AUTHORITY,
  CERT_SIGNATURE_FAILURE: OTHER_AUTHORITY,
};

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (typeof code === 'string') return code;
  // Several addresses were tried: the last one's error says as much as any.
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors.at(-1));
  return '';
}

function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return messageOf(error.errors.at(-1));
  return error instanceof Error ? error.message : String(error);
}

/** The API server's way to say that something went wrong: an object of kind Status. */
interface ApiStatus {
  readonly code: number;
  /** A word such as `Expired`; '' when there is none. */
  readonly reason: string;
  readonly message: string;
  readonly causes: readonly string[];
  readonly retryAfterMs: number | undefined;
}

export function readStatus(raw: unknown, httpCode: number): ApiStatus {
  const details = ownField(raw, 'details');
  const code = ownField(raw, 'code');
  const seconds = ownField(details, 'retryAfterSeconds');
  const causes = ownField(details, 'causes');
  return {
    code: typeof code === 'number' && code > 0 ? code : httpCode,
    reason: text(ownField(raw, 'reason')),
    message: text(ownField(raw, 'message')),
    causes: Array.isArray(causes) ? causes.filter(isMap).map(causeName) : [],
    retryAfterMs: typeof seconds === 'number' && seconds > 0 ? boundRetryAfter(seconds * 1000) : undefined,
  };
}

/** Servers before 1.18.6 give the cause a message, but no reason. */
function causeName(cause: Readonly<Record<string, unknown>>): string {
  return text(ownField(cause, 'reason')) || text(ownField(cause, 'message'));
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/**
 * Whoever asks for more is not believed: the API server itself asks for 1 to 64 s, and a wrong number (or a date, seen
 * by a wrong clock) would silence a resource for as long.
 */
const LONGEST_MS = 60_000;

/** Milliseconds that a `Retry-After` header asks for, in seconds or as a date; at most a minute of them. */
export function readRetryAfter(header: string | undefined, wallTime: () => number): number | undefined {
  if (header === undefined || header.trim() === '') return undefined;
  const text = header.trim();
  const delay = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - wallTime();
  return boundRetryAfter(delay);
}

/** As much of it as is waited for; nothing for what is no number. */
function boundRetryAfter(delayMs: number): number | undefined {
  return Number.isNaN(delayMs) ? undefined : Math.min(Math.max(delayMs, 0), LONGEST_MS);
}
