/** One browser for the tests of a file, and tabs that are closed after each test, which fails for what went wrong in them. */
import type { Browser, BrowserContext } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { whyNoLab } from '../../../../lab/privileges.ts';
import { type Chromium, startChromium, whyNoChromium } from './chromium.ts';
import type { Demo } from './demo.ts';
import { Tab, type TabOptions } from './tab.ts';

/** What the tests of the page share. */
export interface Stage {
  readonly demo: () => Demo;
  readonly browser: () => Browser;
  readonly open: (path: string, options?: TabOptions) => Promise<Tab>;
}

/** The browser is in the node's network, and has no other. */
export function useBrowser(demo: () => Demo): Stage {
  let chromium: Chromium | undefined;
  /** One for all: another begins with a process of its own, which loads and compiles everything again. */
  let context: BrowserContext | undefined;
  const tabs = new Set<Tab>();
  const browser = (): Browser => {
    if (!chromium) throw new Error('the browser is not up');
    return chromium.browser;
  };
  beforeAll(async () => {
    if (whyNoChromium() === undefined && whyNoLab() === undefined)
      chromium = await startChromium(demo().lab.host('node1').pid, REBINDING);
  });
  afterAll(() => chromium?.close());
  beforeEach((context) => {
    const text = whyNoChromium();
    if (text === undefined) return;
    // On CI that is a failure: there, skipped is untested.
    if (process.env['CI'] === 'true') throw new Error(text);
    context.skip(text);
  });
  afterEach(async () => {
    const problems = [...tabs].flatMap((tab) => tab.problems);
    await Promise.all([...tabs].map((tab) => tab.close()));
    tabs.clear();
    expect(problems).toEqual([]);
  });
  const open: Stage['open'] = async (path, options = {}) => {
    context ??= await browser().newContext({ locale: 'en-GB', timezoneId: 'UTC' });
    const tab = await Tab.open(context, { origin: demo().origin, ...options });
    tabs.add(tab);
    if (path !== '') await tab.goTo(path);
    return tab;
  };
  return { demo, browser, open };
}

/** The DNS of another site says that its name, with every port, is this machine. */
const REBINDING = ['--host-resolver-rules=MAP evil.example 127.0.0.1'];
