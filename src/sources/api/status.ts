/** The API server's way to say that something went wrong: an object of kind Status. */
import { isMap, ownField } from '../../model/project/cursor.ts';
import { boundRetryAfter } from './retryAfter.ts';

export interface Status {
  readonly code: number;
  /** A word such as `Expired`; '' when there is none. */
  readonly reason: string;
  readonly message: string;
  readonly causes: readonly string[];
  readonly retryAfterMs: number | undefined;
}

export function readStatus(raw: unknown, httpCode: number): Status {
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
