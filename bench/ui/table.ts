/** The table of all services in a real Chromium: opening it, typing into its search, scrolling it. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import type { Chromium } from '../../test/page/browser/support/chromium.ts';
import type { TableRun } from './messages.ts';
import { CATEGORIES, readTrace } from './trace.ts';

const ROW = 'main a[href^="/services/"]';
const PATIENCE_MS = 60_000;
const KIBIBYTE = 1024;
/** One key after the other, as somebody types who types fast. */
const KEY_PAUSE_MS = 120;
const TYPED = ['service-1234', 'team-42', '10.97.1', '8080', 'service-29999'];
const WHEEL = { turns: 120, pixels: 400, pauseMs: 16 };
/** Less than this the browser does not report of an event: it was on the screen with the next frame. */
const LEAST_REPORTED_MS = 16;

/** Rows without a script: what this machine draws at best. */
const PLAIN = Array.from({ length: 2000 }, (_, row) => `<p>row ${row}</p>`).join('');

/** When the first rows were on the screen, and how long each key took until the screen showed it. */
const OBSERVE = `
window.bench = { painted: undefined, keys: [] };
new PerformanceObserver((list) => {
  for (const { name, duration } of list.getEntries()) if (name === 'keydown') window.bench.keys.push(duration);
}).observe({ type: 'event', durationThreshold: ${LEAST_REPORTED_MS} });
const observer = new MutationObserver(() => {
  if (!document.querySelector(${JSON.stringify(ROW)})) return;
  observer.disconnect();
  requestAnimationFrame(() => setTimeout(() => { window.bench.painted = performance.now(); }));
});
observer.observe(document, { subtree: true, childList: true });
`;

/** Rows may be there before the answer has ended: then there was nothing to wait for. */
const OPENED = `(() => {
  const answers = performance.getEntriesByType('resource').filter(({ name }) => /\\/v1\\/services(?:\\?|$)/.test(name));
  const [first] = answers.filter(({ responseEnd }) => responseEnd <= window.bench.painted).sort((a, b) => b.responseEnd - a.responseEnd);
  return { painted: window.bench.painted, answered: first?.responseEnd ?? window.bench.painted };
})()`;

export async function measureTable(
  { browser }: Chromium,
  origin: string,
  repetitions: number,
): Promise<TableRun> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  context.setDefaultTimeout(PATIENCE_MS);
  await context.addInitScript(OBSERVE);
  const page = await context.newPage();
  const paintMs: number[] = [];
  const openMs: number[] = [];
  for (let count = 0; count < repetitions; count++) {
    await page.goto(`${origin}/services`);
    await page.waitForSelector(ROW);
    // Two frames later, at the latest.
    await sleep(500);
    const { painted, answered } = await page.evaluate<{ painted: number; answered: number }>(OPENED);
    paintMs.push(painted - answered);
    openMs.push(painted);
  }
  const cdp = await browser.newBrowserCDPSession();
  const { processInfo } = await cdp.send('SystemInfo.getProcessInfo');
  const [renderer] = processInfo
    .filter(({ type }) => type === 'renderer')
    .sort((a, b) => b.cpuTime - a.cpuTime);
  const pid = renderer?.id ?? 0;
  const traced = async (on: Page, work: (on: Page) => Promise<void>) => {
    await browser.startTracing(on, { categories: [...CATEGORIES] });
    await work(on);
    return readTrace(await browser.stopTracing());
  };
  const typing = await traced(page, type);
  const keys = await page.evaluate<readonly number[]>('window.bench.keys');
  const scrolling = await traced(page, scroll);
  const memory = await memoryOf(page, pid);
  const plain = await context.newPage();
  await plain.setContent(PLAIN);
  const plainScrolling = await traced(plain, scroll);
  await context.close();
  const all = TYPED.join('').length;
  const unreported = Array.from({ length: Math.max(0, all - keys.length) }, () => LEAST_REPORTED_MS);
  const keyMs = [...keys, ...unreported].sort((a, b) => a - b);
  return { paintMs, openMs, typing: { ...typing, keyMs }, scrolling, plainScrolling, memory };
}

async function type(page: Page): Promise<void> {
  const search = page.getByRole('searchbox').first();
  for (const text of TYPED) {
    await search.fill('');
    await search.pressSequentially(text, { delay: KEY_PAUSE_MS });
  }
  await search.fill('');
  await sleep(500);
}

async function scroll(page: Page): Promise<void> {
  await page.mouse.move(640, 600);
  for (let turn = 0; turn < WHEEL.turns; turn++) {
    await page.mouse.wheel(0, WHEEL.pixels);
    await sleep(WHEEL.pauseMs);
  }
}

/** As the browser's own task manager counts it: what nothing else shares. */
async function memoryOf(page: Page, pid: number): Promise<TableRun['memory']> {
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return { tab: Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1]) * KIBIBYTE, heap: usedSize };
}
