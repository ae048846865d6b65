/** What the API server holds of one resource, as slim values by key. Differences are emitted. */
import { deepEqual } from '../../model/equal.ts';
import type { SourceProblem } from '../source.ts';
import { ListenerError } from './failure.ts';
import type { ReceivedObject } from './received.ts';
import { printMessage, printPath, type Problem } from '../../text/cursor.ts';

interface StoreOptions<T> {
  /** `Service` */
  readonly kind: string;
  /** Only differences; `undefined`: it is gone. */
  readonly emit: (key: string, value: T | undefined) => void;
  readonly report: (problem: SourceProblem) => void;
}

/** For one object; more of them are of no use to a reader. */
const MOST_REPORTS = 20;
const NAMELESS: Problem = { path: ['metadata'], message: 'metadata has no name', expected: 'a name' };

export class ResourceStore<T> {
  readonly #options: StoreOptions<T>;
  readonly #values = new Map<string, T>();
  /** By key: problems that were reported and still exist. */
  readonly #reported = new Map<string, ReadonlySet<string>>();
  /** While a list goes on: the keys that came with it. */
  #listed: Set<string> | undefined;
  /** Every object of the list could be named. */
  #isWhole = true;

  constructor(options: StoreOptions<T>) {
    this.#options = options;
  }

  get size(): number {
    return this.#values.size;
  }

  has(key: string): boolean {
    return this.#values.has(key);
  }

  /** From here to `endList`, what is set belongs to the list. A list that failed is forgotten by beginning another. */
  beginList(): void {
    this.#listed = new Set();
    this.#isWhole = true;
  }

  /** The list was complete: what did not come with it is gone, if it is known what came. Returns how many objects came. */
  endList(): number {
    const listed = this.#listed ?? new Set();
    this.#listed = undefined;
    if (this.#isWhole) {
      for (const key of this.#values.keys()) if (!listed.has(key)) this.#drop(key);
      for (const key of this.#reported.keys()) if (!listed.has(key)) this.#reported.delete(key);
    }
    return listed.size;
  }

  set(object: ReceivedObject<T>): void {
    const { key } = object;
    if (key === undefined) {
      this.#setNameless(object);
      return;
    }
    this.#listed?.add(key);
    const projection = object.project();
    switch (projection.kind) {
      case 'object':
        this.#reportOnce(key, projection.warnings, 'warning');
        this.#keep(key, projection.value);
        break;
      case 'ignored':
        this.#reported.delete(key);
        this.#drop(key);
        break;
      case 'invalid':
        this.#reportOnce(key, this.#withConsequence(key, projection.problems), 'error');
        break;
    }
  }

  #withConsequence(key: string, problems: readonly Problem[]): readonly Problem[] {
    const then = this.#values.has(key) ? 'its last good version stays in force' : 'it is not served';
    return problems.map((problem) => ({ ...problem, message: `${problem.message}; ${then}` }));
  }

  /** An object whose name cannot be decoded may be any of those that did not come with the list. */
  #setNameless(object: ReceivedObject<T>): void {
    const projection = object.isBroken ? object.project() : undefined;
    const problems = projection?.kind === 'invalid' ? projection.problems : [NAMELESS];
    this.#reportOnce('', problems, 'error');
    if (object.isBroken) this.#isWhole = false;
  }

  delete({ key }: ReceivedObject<T>): void {
    if (key === undefined) return;
    this.#listed?.delete(key);
    this.#reported.delete(key);
    this.#drop(key);
  }

  #keep(key: string, value: T): void {
    const before = this.#values.get(key);
    if (before !== undefined && deepEqual(before, value)) return;
    this.#values.set(key, value);
    this.#emit(key, value);
  }

  #drop(key: string): void {
    if (this.#values.delete(key)) this.#emit(key, undefined);
  }

  #emit(key: string, value: T | undefined): void {
    try {
      this.#options.emit(key, value);
    } catch (error) {
      throw new ListenerError(error);
    }
  }

  #reportOnce(key: string, problems: readonly Problem[], severity: SourceProblem['severity']): void {
    if (problems.length === 0) {
      if (this.#reported.size > 0) this.#reported.delete(key);
      return;
    }
    const before = this.#reported.get(key);
    const now = new Set<string>();
    for (const problem of problems.slice(0, MOST_REPORTS)) {
      const message = printMessage(problem);
      now.add(message);
      if (before?.has(message)) continue;
      const object = key === '' ? {} : { object: `${this.#options.kind} ${key}` };
      this.#options.report({
        severity,
        where: 'API server',
        ...object,
        field: printPath(problem.path),
        message,
        expected: problem.expected,
      });
    }
    this.#reported.set(key, now);
  }
}
