/** The result of a check of the machine, and what the daemon does with it. */
import { JunctionError } from '../../errors.ts';
import type { Log } from '../../log/log.ts';

export type CheckState =
  | 'present'
  | 'missing'
  /** It could not be tried. */
  | 'unknown'
  /** The mode runs, but what it is needed for does not work. */
  | 'degraded';

/** `always`: without it the mode cannot run. */
export type Need = 'always' | `for ${string}`;

export interface Check {
  /** `kernel module ip_vs` */
  readonly subject: string;
  readonly state: CheckState;
  readonly needed: Need;
  readonly found: string;
  /** Empty where nothing is wrong. */
  readonly remedy: string;
}

export type Trial =
  | { readonly state: 'done' }
  /** `reason`: the kernel's error name (`EOPNOTSUPP`) or a program's message. */
  | { readonly state: 'refused'; readonly reason: string };

export const DONE: Trial = { state: 'done' };

/** `unclear`: nothing that is needed is known to be missing, but something of it could not be tried. */
type Readiness = 'yes' | 'no' | 'unclear';

export function present(subject: string, needed: Need, found: string): Check {
  return { subject, state: 'present', needed, found, remedy: '' };
}

/** `missing` or `degraded`, by what it is needed for. */
export function absent(subject: string, needed: Need, found: string, remedy: string): Check {
  return { subject, state: needed === 'always' ? 'missing' : 'degraded', needed, found, remedy };
}

export function unknown(subject: string, needed: Need, found: string, remedy: string): Check {
  return { subject, state: 'unknown', needed, found, remedy };
}

export function readinessOf(checks: readonly Check[]): Readiness {
  if (checks.some(({ state }) => state === 'missing')) return 'no';
  return checks.some(({ state, needed }) => state === 'unknown' && needed === 'always') ? 'unclear' : 'yes';
}

/** `ipvs mode cannot run here: 2 things are missing.` */
export function summary(mode: string, checks: readonly Check[]): string {
  const count = (state: CheckState): number => checks.filter((check) => check.state === state).length;
  const beginnings: Readonly<Record<Readiness, string>> = {
    yes: `${mode} mode can run here`,
    no: `${mode} mode cannot run here: ${things(count('missing'), 'is', 'are')} missing`,
    unclear: `whether ${mode} mode can run here is not clear`,
  };
  const rest = [
    ...(count('degraded') > 0 ? [`${things(count('degraded'), 'is', 'are')} only partly there`] : []),
    ...(count('unknown') > 0 ? [`${things(count('unknown'), 'was', 'were')} not tried`] : []),
  ];
  return `${[beginnings[readinessOf(checks)], ...rest].join('; ')}.`;
}

function things(count: number, one: string, many: string): string {
  return count === 1 ? `1 thing ${one}` : `${count} things ${many}`;
}

/** Warns of what is degraded. Throws when something that is needed is missing. */
export function report(mode: string, checks: readonly Check[], log: Pick<Log, 'warn' | 'verbose'>): void {
  const readiness = readinessOf(checks);
  for (const { subject, state, needed, found, remedy } of checks) {
    const fields = { what: subject, found, needed, whatToDo: remedy };
    if (state === 'degraded') log.warn('The machine lacks something that is needed for a part', fields);
    // While something is missing, what could not be tried because of that is noise.
    else if (state === 'unknown' && needed === 'always' && readiness === 'unclear')
      log.warn('Could not check something that is needed', fields);
    else log.verbose(2, 'Checked', { ...fields, state });
  }
  if (readiness !== 'no') return;
  const missing = checks.filter(({ state }) => state === 'missing');
  throw new JunctionError('PREFLIGHT_FAILED', summary(mode, missing).replace(/\.$/, ''), {
    detail: missing.map(({ subject, found, remedy }) => `- ${subject}: ${found}\n  ${remedy}`).join('\n'),
    hint: `Bring what is missing; \`junction check --proxy-mode=${mode}\` shows it again.`,
  });
}
