/** Why a request, or the stream that it opened, came to nothing; sorted by what can be done about it. */
import {
  errorCode,
  type ErrorCode,
  type ErrorOptions,
  isJunctionError,
  JunctionError,
  messageOf,
} from '../../errors.ts';
import { ownField, ownText } from '../../text/cursor.ts';
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
  /** The HTTP status that the API server answered with. */
  readonly status?: number | undefined;
  readonly retryAfterMs?: number | undefined;
}

export class ApiFailure extends JunctionError {
  readonly kind: FailureKind;
  readonly status: number | undefined;
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

export function endedAtOnce(resource: string): ApiFailure {
  const message = `watching ${resource}: it ended as soon as it had begun`;
  return new ApiFailure('API_UNREACHABLE', 'unreachable', message);
}

/** etcd was restored from a backup, or another cluster answers: what we know is of another history. */
export function wentBack(resource: string, from: string, to: string): ApiFailure {
  const message = `watching ${resource}: the resourceVersion went back from ${from} to ${to}`;
  return new ApiFailure('API_MALFORMED', 'ahead', message);
}

const TOO_LARGE = 'Too large resource version';

/** From an object of kind Status, in which the API server says that something went wrong; or from anything else. */
export function failureOfStatus(
  raw: unknown,
  httpCode: number,
  what: string,
  retryAfterMs?: number,
): ApiFailure {
  const given = ownField(raw, 'code');
  const status = typeof given === 'number' && given > 0 ? given : httpCode;
  const reason = ownText(raw, 'reason');
  const text = ownText(raw, 'message');
  const details = ownField(raw, 'details');
  const causes = ownField(details, 'causes');
  const isTooLarge = (cause: unknown): boolean =>
    // Servers before 1.18.6 give the cause a message, but no reason.
    ['ResourceVersionTooLarge', TOO_LARGE].includes(ownText(cause, 'reason') || ownText(cause, 'message'));
  const isExpired = status === 410 || reason === 'Expired' || reason === 'Gone';
  const isAhead =
    (Array.isArray(causes) && causes.some(isTooLarge)) || (status === 504 && text.includes(TOO_LARGE));
  const kind = isExpired ? 'expired' : isAhead ? 'ahead' : kindOfStatus(status);
  const seconds = ownField(details, 'retryAfterSeconds');
  const message = `${what}: the API server answered ${status}${reason && ` ${reason}`}${text && `: ${quoteMessage(text)}`}`;
  return new ApiFailure('API_REFUSED', kind, message, {
    status,
    retryAfterMs:
      retryAfterMs ??
      (typeof seconds === 'number' && seconds > 0 ? boundRetryAfter(seconds * 1000) : undefined),
    hint: HINTS[kind],
  });
}

const KINDS: Readonly<Record<number, FailureKind>> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'absent',
  408: 'serverError',
  429: 'busy',
};

function kindOfStatus(status: number): FailureKind {
  return KINDS[status] ?? (status >= 500 ? 'serverError' : 'unsupported');
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

/** What the network, TLS or the HTTP parser threw. */
export function failureOfError(error: unknown, what: string): ApiFailure {
  if (error instanceof ApiFailure) return error;
  if (isJunctionError(error)) {
    const { code, message, hint, detail } = error;
    return new ApiFailure(code, 'credentials', message, { hint, detail, cause: error });
  }
  const code = networkCode(error);
  const tls =
    TLS_PROBLEMS[code] ?? (/^ERR_(?:TLS|SSL)_|^EPROTO$|CERT/.test(code) ? networkMessage(error) : undefined);
  if (tls !== undefined) {
    const message = `${what}: cannot trust the API server: ${quoteMessage(tls)}`;
    return new ApiFailure('API_UNTRUSTED', 'untrusted', message, { cause: error });
  }
  if (code.startsWith('HPE_')) return malformedAnswer(`${what}: the answer is not HTTP (${code})`, error);
  const message = networkMessage(error);
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

/** Where several addresses were tried, the last one's error says as much as any. */
function networkCode(error: unknown): string {
  return errorCode(error) ?? (error instanceof AggregateError ? networkCode(error.errors.at(-1)) : '');
}

function networkMessage(error: unknown): string {
  const isEmpty = error instanceof AggregateError && error.message === '';
  return isEmpty ? networkMessage(error.errors.at(-1)) : messageOf(error);
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
