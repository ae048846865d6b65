/**
 * The program in the guest: runs the suites' tests one after another and tells of each as it begins and as it ends.
 * Its arguments are the numbers of those that are wanted.
 */
import { AssertionError } from 'node:assert';
import { inspect } from 'node:util';
import { allTests, type NamedTest } from './allTests.ts';
import { SuiteContext } from './context.ts';
import type { Report } from './report.ts';
import { type GuestContext, Mismatch } from './suite.ts';

/** For one test. What is stuck must not keep the others from their turn. */
const LIMIT_MS = 300_000;

const numbers = new Set(process.argv.slice(2).map(Number));
const wanted = allTests().filter((_, number) => numbers.has(number));

for (const suite of new Set(wanted.map((test) => test.suite))) {
  const context = new SuiteContext();
  for (const test of wanted.filter((each) => each.suite === suite)) await tellOf(test, context);
  await context.close();
}
process.exit(0);

async function tellOf(test: NamedTest, context: GuestContext): Promise<void> {
  const { suite, name } = test;
  tell({ begun: { suite, name } });
  const begun = performance.now();
  const message = await failureOf(test, context);
  const milliseconds = Math.round(performance.now() - begun);
  tell({ result: { suite, name, ok: message === '', message, milliseconds } });
}

async function failureOf({ run }: NamedTest, context: GuestContext): Promise<string> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`still running after ${LIMIT_MS} ms`)), LIMIT_MS);
  });
  try {
    await Promise.race([run(context), limit]);
    return '';
  } catch (error) {
    return textOf(error) || 'it failed without a word';
  } finally {
    clearTimeout(timer);
  }
}

function textOf(error: unknown): string {
  return error instanceof Mismatch || error instanceof AssertionError ? error.message : inspect(error);
}

/** Written in one go and at once: what is told must not be lost when the guest is. */
function tell(report: Report): void {
  process.stdout.write(`${JSON.stringify(report)}\n`);
}
