/** A browser for the tests of one file, and tabs that are closed after each test, which fails for what went wrong in them. */
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { whyNoLab } from '../../../../lab/privileges.ts';
import { type Chromium, startChromium, whyNoChromium } from './chromium.ts';
import { Tab, type TabOptions } from './tab.ts';

export type OpenTab = (path: string, options?: TabOptions) => Promise<Tab>;

interface Place {
  /** Of a process whose network the browser is in; unset: this one's. */
  readonly pid?: number;
  readonly origin: string;
}

/** `place` is asked when the hooks before it have run. */
export function useBrowser(place: () => Place): OpenTab {
  let chromium: Chromium | undefined;
  const tabs = new Set<Tab>();
  beforeAll(async () => {
    if (whyNoChromium() === undefined && whyNoLab() === undefined)
      chromium = await startChromium(place().pid);
  });
  afterAll(async () => {
    await chromium?.close();
  });
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
  return async (path, options) => {
    if (!chromium) throw new Error('the browser is not up');
    const tab = await Tab.open(chromium, place().origin, path, options);
    tabs.add(tab);
    return tab;
  };
}
