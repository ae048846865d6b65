/** Beyond loopback: somebody in another network, with a token and without. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { addressOf } from '../../../lab/topology.ts';
import { useInLab } from '../../e2e/support/use.ts';
import { useLab } from '../../lab/requireLab.ts';
import { violations } from './support/axe.ts';
import { Demo } from './support/demo.ts';
import type { Tab } from './support/tab.ts';
import { useBrowser } from './support/use.ts';

const TOKEN = 'a-token-of-this-test-0123456789';
/** Chromium notes the answer to a question without the token, and headers that it takes over TLS alone. */
const EXPECTED = /status of 401|Cross-Origin-Opener-Policy header has been ignored/;

const enter = async (tab: Tab, token: string): Promise<void> => {
  await tab.page.getByLabel('Token').first().fill(token);
  await tab.page.keyboard.press('Enter');
};

describe('the page at an address of the node, seen from outside', () => {
  const folder = mkdtempSync(join(tmpdir(), 'junction-page-'));
  const file = join(folder, 'token');
  writeFileSync(file, `${TOKEN}\n`, { mode: 0o600 });
  afterAll(() => rmSync(folder, { recursive: true }));
  const lab = useLab();
  const address = `${addressOf('node1', 'IPv4', 2)}:8080`;
  const demo = useInLab(() =>
    Demo.start(lab(), { address, viewer: 'client', flags: [`--ui-token-file=${file}`] }),
  );
  const open = useBrowser(demo);

  test('asks for the token, refuses a wrong one, and keeps the right one for this tab', async () => {
    const tab = await open('/services', { expected: EXPECTED });
    await tab.says('This page needs a token');
    expect(await tab.main().getByText('shop/web').count()).toBe(0);
    expect(await violations(tab)).toEqual([]);
    await enter(tab, 'a-wrong-token-0123456789-0123456789');
    await tab.says('This is not the token');
    await enter(tab, TOKEN);
    await tab.says('shop/web');
    await tab.page.locator('header .live', { hasText: 'connected' }).waitFor();
    await tab.goTo('/services/shop/web');
    await tab.says('10.96.0.20:80');
    expect(tab.asked.filter((path) => path.includes('token'))).toEqual([]);
    expect(await tab.page.context().cookies()).toEqual([]);
  });

  test('a link may have it, behind the sign that no browser sends', async () => {
    const tab = await open(`/services/shop/web#token=${TOKEN}`, { expected: EXPECTED });
    await tab.says('10.96.0.20:80');
    expect(tab.address).toBe('/services/shop/web');
    expect(tab.asked.filter((path) => path.includes('token'))).toEqual([]);
  });
});
