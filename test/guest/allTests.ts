/** Every test of every suite, numbered by its place: the host asks by these numbers. */
import type { GuestTest } from './suite.ts';
import { SUITES } from './suites/index.ts';

export interface NamedTest {
  readonly suite: string;
  readonly name: string;
  readonly run: GuestTest;
}

export function allTests(): readonly NamedTest[] {
  return SUITES.flatMap(({ name: suite, tests }) =>
    Object.entries(tests).map(([name, run]) => ({ suite, name, run })),
  );
}
