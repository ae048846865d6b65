/** Debian's Chromium in a host of the lab. It has no other network, and dies with the test that started it. */
import { accessSync, chmodSync, constants, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { TOOL_PATH } from '../../../../lab/tools.ts';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/** Nothing of its own goes over the network; as root, and in a namespace, it cannot make its sandbox. */
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Where /dev/shm is small, as in containers.
  '--disable-dev-shm-usage',
];

function findChromium(): string | undefined {
  return TOOL_PATH.split(':')
    .flatMap((folder) => NAMES.map((name) => join(folder, name)))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

export function whyNoChromium(): string | undefined {
  return findChromium() === undefined
    ? 'There is no Chromium here: apt-get install chromium fonts-dejavu-core'
    : undefined;
}

export interface Chromium {
  readonly browser: Browser;
  close(): Promise<void>;
}

/** `pid`: of a process in whose network it is to be. */
export async function startChromium(pid: number | undefined, args: readonly string[]): Promise<Chromium> {
  const program = findChromium();
  if (program === undefined) throw new Error(whyNoChromium());
  const folder = mkdtempSync(join(tmpdir(), 'junction-chromium-'));
  const enter = pid === undefined ? '' : `nsenter --net=/proc/${pid}/ns/net -- `;
  const starter = join(folder, 'chromium');
  // It writes settings and crash reports into a home folder, which is to be gone afterwards.
  const environment = `HOME=${folder} XDG_CONFIG_HOME=${folder} XDG_CACHE_HOME=${folder} PATH='${TOOL_PATH}'`;
  writeFileSync(starter, `#!/bin/sh\nexec env ${environment} ${enter}${program} "$@"\n`);
  chmodSync(starter, 0o755);
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  try {
    const browser = await chromium.launch({
      executablePath: starter,
      args: [...ARGS, ...args],
      chromiumSandbox: false,
      timeout: 150_000,
    });
    const close = async (): Promise<void> => {
      await browser.close();
      remove();
    };
    return { browser, close };
  } catch (error) {
    remove();
    throw error;
  }
}
