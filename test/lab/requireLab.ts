import { afterAll, beforeAll, beforeEach, type TestContext } from 'vitest';
import { Lab, type LabOptions } from '../../lab/lab.ts';
import { whyNoLab } from '../../lab/privileges.ts';

let reason: { readonly text: string | undefined } | undefined;

function missing(): string | undefined {
  if (!reason) {
    reason = { text: whyNoLab() };
    // The reporter that people see by default does not print why a test is skipped.
    if (reason.text !== undefined) console.warn(`The lab's tests are skipped. ${reason.text}`);
  }
  return reason.text;
}

/** Skips the test where no lab can be made, and says why. On CI that is a failure: there, skipped is untested. */
export function requireLab(context: Pick<TestContext, 'skip'>): void {
  const text = missing();
  if (text === undefined) return;
  if (process.env['CI'] === 'true') throw new Error(text);
  context.skip(text);
}

/** One lab for the tests of a file or a `describe`. */
export function useLab(options: LabOptions = {}): () => Lab {
  let lab: Lab | undefined;
  beforeAll(async () => {
    if (missing() === undefined) lab = await Lab.start(options);
  });
  afterAll(async () => {
    await lab?.close();
  });
  beforeEach((context) => requireLab(context));
  return () => {
    if (!lab) throw new Error('the lab is not up');
    return lab;
  };
}
