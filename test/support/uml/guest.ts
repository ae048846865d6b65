/** Tests in a guest: when they are skipped, and sources that are bundled for it. */
import { rm } from 'node:fs/promises';
import type { TestContext } from 'vitest';
import { type GuestOptions, type GuestResult, runInGuest, whyNoGuest } from '../../../lab/guest/machine.ts';
import { bundle } from '../../system/support/bundle.ts';

export { whyNoGuest };

const LIMIT_MS = 600_000;

/**
 * Skips where there is no User-mode Linux, or one of the host's programs that run in it is missing. On CI that is a
 * failure: skipped is untested.
 */
export function requireGuest(context: Pick<TestContext, 'skip'>, programs: readonly string[] = []): void {
  const reason = whyNoGuest(programs);
  if (reason === undefined) return;
  if (process.env['CI'] === 'true') throw new Error(reason);
  context.skip(reason);
}

/** What the source, run with Node inside, prints as JSON. Fails when it ends otherwise than well. */
export async function jsonFromGuest(
  name: string,
  source: string,
  options: GuestOptions = {},
): Promise<unknown> {
  const { code, stdout, stderr } = await runSourceInGuest(name, source, options);
  if (code !== 0 || stderr !== '')
    throw new Error(`the script ${name} ended with ${code} in the guest\n${stderr}`);
  return JSON.parse(stdout);
}

/** Bundles the source, whose imports start at the project, and runs it with Node inside. */
export async function runSourceInGuest(
  name: string,
  source: string,
  options: GuestOptions = {},
): Promise<GuestResult> {
  const script = await bundle(name, source);
  try {
    return await runInGuest(script, { timeoutMs: LIMIT_MS, ...options });
  } finally {
    await rm(script);
  }
}
