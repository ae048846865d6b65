/** Whether a program's failure says anything about what it was asked. */
import type { JunctionError } from '../errors.ts';

/** What a machine is short of now it may have again later. */
const SHORTAGES: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM']);

/** The kernel's words for the same, as iptables prints them. */
const PASSING =
  /Resource temporarily unavailable|Cannot allocate memory|Too many open files|Interrupted system call/;

/** It gave no answer, for a reason that passes: its lock was held, it was killed, the machine was short of something. */
export function isUnanswered(error: JunctionError): boolean {
  const { code, cause } = error;
  if (code === 'PROGRAM_NOT_STARTED')
    return cause instanceof Error && 'code' in cause && SHORTAGES.has(cause.code);
  if (code === 'IPTABLES_FAILED') return PASSING.test(error.detail ?? '');
  return code === 'XTABLES_LOCK_HELD' || code === 'PROGRAM_TIMED_OUT' || code === 'PROGRAM_KILLED';
}
