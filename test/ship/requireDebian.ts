import type { TestContext } from 'vitest';

export const RELEASE = 'http://deb.debian.org/debian/dists/bookworm/InRelease';
const LIMIT_MS = 60_000;

/** Skips the test where Debian's archive cannot be reached, and says why. On CI that is a failure. */
export async function requireDebian(context: Pick<TestContext, 'skip'>): Promise<void> {
  const reason = await whyNoDebian();
  if (reason === undefined) return;
  if (process.env['CI'] === 'true') throw new Error(reason);
  context.skip(reason);
}

async function whyNoDebian(): Promise<string | undefined> {
  try {
    const { ok, status } = await fetch(RELEASE, { method: 'HEAD', signal: AbortSignal.timeout(LIMIT_MS) });
    return ok ? undefined : `Debian's archive answers ${status} for ${RELEASE}`;
  } catch (error) {
    return `Debian's archive cannot be reached: ${String(error)}`;
  }
}
