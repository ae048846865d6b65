/** What a look at the machine found, as a value. Pure. */

export type CheckState =
  | 'present'
  | 'missing'
  /** It could not be tried. */
  | 'unknown'
  /** The mode runs without it, and something of less weight does not work. */
  | 'degraded';

/** Without the one the mode cannot run; without the other, what it names does not work. */
export type Need = 'always' | `for ${string}`;

export interface Check {
  /** `kernel module ip_vs` */
  readonly subject: string;
  readonly state: CheckState;
  readonly needed: Need;
  readonly found: string;
  /** What brings it; empty where nothing is wrong. */
  readonly remedy: string;
}

export type Verdict =
  | 'yes'
  | 'no'
  /** Nothing that is needed is known to be missing, but something of it could not be tried. */
  | 'unclear';

export function present(subject: string, needed: Need, found: string): Check {
  return { subject, state: 'present', needed, found, remedy: '' };
}

/** Something that is not there: how bad that is depends on what it is needed for. */
export function absent(subject: string, needed: Need, found: string, remedy: string): Check {
  return { subject, state: needed === 'always' ? 'missing' : 'degraded', needed, found, remedy };
}

export function unknown(subject: string, needed: Need, found: string, remedy: string): Check {
  return { subject, state: 'unknown', needed, found, remedy };
}

export function verdictOf(checks: readonly Check[]): Verdict {
  if (checks.some(({ state }) => state === 'missing')) return 'no';
  return checks.some(({ state, needed }) => state === 'unknown' && needed === 'always') ? 'unclear' : 'yes';
}

/** `ipvs mode cannot run here: 2 things are missing.` */
export function summary(mode: string, checks: readonly Check[]): string {
  const count = (state: CheckState): number => checks.filter((check) => check.state === state).length;
  const verdicts: Readonly<Record<Verdict, string>> = {
    yes: `${mode} mode can run here`,
    no: `${mode} mode cannot run here: ${things(count('missing'), 'is', 'are')} missing`,
    unclear: `whether ${mode} mode can run here is not clear`,
  };
  const rest = [
    ...(count('degraded') > 0 ? [`${things(count('degraded'), 'is', 'are')} only partly there`] : []),
    ...(count('unknown') > 0 ? [`${things(count('unknown'), 'was', 'were')} not tried`] : []),
  ];
  return `${[verdicts[verdictOf(checks)], ...rest].join('; ')}.`;
}

function things(count: number, one: string, many: string): string {
  return count === 1 ? `1 thing ${one}` : `${count} things ${many}`;
}
