import type { Outcome } from '../protocol.ts';

export type Failure = Exclude<Outcome, { outcome: 'answer' }>;

/** These say that the caller asked for a source it cannot have: a mistake in the test, not a fact about the network. */
const CALLER_MISTAKES = new Set(['EADDRINUSE', 'EADDRNOTAVAIL', 'EINVAL', 'ERR_SOCKET_BAD_PORT']);

export function isCallerMistake(error: NodeJS.ErrnoException): boolean {
  return CALLER_MISTAKES.has(error.code ?? '');
}

export function failureOf(error: NodeJS.ErrnoException): Failure {
  if (error.code === 'ECONNREFUSED') return { outcome: 'refused' };
  if (error.code === 'ETIMEDOUT') return { outcome: 'timeout' };
  return { outcome: 'unreachable', code: error.code ?? error.message };
}
