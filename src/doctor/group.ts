/** What one group of checks found. */
import { isJunctionError } from '../errors.ts';
import type { Finding } from '../explain/types.ts';
import type { DoctorGroup, DoctorGroupName } from '../explain/doctorReport.ts';

/** Each finding of doctor says all of it. */
interface Diagnosis extends Finding {
  readonly evidence: string;
  readonly consequence: string;
  readonly cure: string;
}

/** Filled by a group of checks. */
export class GroupFindings {
  readonly #findings: Finding[] = [];
  readonly #fine: string[] = [];
  readonly #notEvaluated: string[] = [];

  found(diagnosis: Diagnosis): void {
    this.#findings.push(diagnosis);
  }

  fine(text: string): void {
    this.#fine.push(text);
  }

  /** `what` could not be looked at. */
  notEvaluated(what: string, why: string): void {
    this.#notEvaluated.push(`${what}: ${why}`);
  }

  toGroup(name: DoctorGroupName): DoctorGroup {
    return {
      name,
      findings: this.#findings.toSorted((left, right) => WEIGHTS[right.severity] - WEIGHTS[left.severity]),
      fine: this.#fine,
      notEvaluated: this.#notEvaluated,
    };
  }
}

const WEIGHTS: Readonly<Record<Finding['severity'], number>> = { error: 2, warning: 1, info: 0 };

export type GroupCheck = (group: GroupFindings) => Promise<void> | void;

/** A group that cannot be looked at says why, and the others are looked at all the same. */
export async function examine(name: DoctorGroupName, check: GroupCheck): Promise<DoctorGroup> {
  const group = new GroupFindings();
  try {
    await check(group);
  } catch (error) {
    if (!isJunctionError(error)) throw error;
    group.notEvaluated(name, `${error.message}. ${error.hint}`);
  }
  return group.toGroup(name);
}
