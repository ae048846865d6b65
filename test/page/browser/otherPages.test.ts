/** Pages of other origins in the same browser: whatever they try, they learn nothing. */
import type { Page } from 'playwright-core';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { useInLab } from '../../e2e/support/use.ts';
import { eventually } from '../../e2e/support/eventually.ts';
import { tryFetch } from '../../e2e/support/fetch.ts';
import { useLab } from '../../lab/requireLab.ts';
import { type Chromium, startChromium, whyNoChromium } from './support/chromium.ts';
import { Demo } from './support/demo.ts';

/** A site that anybody could have, at a port of its own. */
const SITE = `require('node:http').createServer((_, answer) => {
  answer.writeHead(200, { 'Content-Type': 'text/html' }).end('<title>other</title><a href="http://127.0.0.1:8080/services">look</a>');
}).listen(9000, '127.0.0.1')`;
/** Its DNS says that its name, with every port, is this machine. */
const REBINDING = ['--host-resolver-rules=MAP evil.example 127.0.0.1'];
const TARGET = 'http://127.0.0.1:8080';

/** Each returns what it has learned. */
const ATTEMPTS: readonly (readonly [string, string])[] = [
  ['a fetch', `fetch('${TARGET}/v1/status').then((r) => r.text(), () => 'nothing')`],
  [
    'a fetch that wants no answer',
    `fetch('${TARGET}/v1/status', { mode: 'no-cors' }).then((r) => r.text(), () => 'nothing').then((t) => t || 'nothing')`,
  ],
  [
    'a fetch with a header',
    `fetch('${TARGET}/v1/status', { headers: { Authorization: 'Bearer x' } }).then((r) => r.text(), () => 'nothing')`,
  ],
  [
    'a stream',
    `new Promise((done) => { const s = new EventSource('${TARGET}/v1/watch?format=events'); s.onopen = () => done('a stream'); s.onerror = () => { s.close(); done('nothing'); }; })`,
  ],
  ...['script', 'img'].map((tag): readonly [string, string] => [
    `an element ${tag}`,
    `new Promise((done) => { const e = document.createElement('${tag}'); e.onload = () => done('loaded'); e.onerror = () => done('nothing'); e.src = '${TARGET}/${tag === 'img' ? 'icon.svg' : 'v1/services'}'; document.body.append(e); })`,
  ]),
  [
    'a frame',
    `new Promise((done) => { const e = document.createElement('iframe'); e.onload = () => { try { done(e.contentDocument?.title ?? 'nothing'); } catch { done('nothing'); } }; e.src = '${TARGET}/services'; document.body.append(e); })`,
  ],
  [
    'a form',
    `new Promise((done) => { const f = document.createElement('iframe'); f.name = 'f'; document.body.append(f); const e = document.createElement('form'); e.action = '${TARGET}/v1/status'; e.method = 'post'; e.target = 'f'; document.body.append(e); f.onload = () => { try { done(f.contentDocument?.body?.innerText ?? 'nothing'); } catch { done('nothing'); } }; e.submit(); })`,
  ],
];

describe('a page of another origin', () => {
  const lab = useLab();
  const demo = useInLab(() => Demo.start(lab()));
  beforeEach((context) => {
    const why = whyNoChromium();
    if (why !== undefined && process.env['CI'] === 'true') throw new Error(why);
    if (why !== undefined) context.skip(why);
  });

  async function openBrowser(): Promise<Chromium> {
    const node = lab().host('node1');
    const site = node.spawn([process.execPath, '-e', SITE]);
    const chromium = await startChromium(node.pid, REBINDING);
    onTestFinished(async () => {
      await chromium.close();
      site.kill();
    });
    await eventually(
      'the site',
      async () => typeof (await tryFetch(node, 'http://127.0.0.1:9000/')) !== 'string',
    );
    expect(demo().log).toContain('Serving the page');
    return chromium;
  }

  /** What the proxy answered to it. */
  function answersTo(page: Page): string[] {
    const answers: string[] = [];
    page.on('response', (response) => {
      if (response.url().includes(':8080/'))
        answers.push(`${response.status()} ${new URL(response.url()).pathname}`);
    });
    return answers;
  }

  test('of another site, and of another port of this machine, learns nothing', async () => {
    const { browser } = await openBrowser();
    for (const origin of ['http://evil.example:9000', 'http://localhost:9000', 'http://127.0.0.1:9000']) {
      const page = await browser.newPage();
      const answers = answersTo(page);
      await page.goto(origin);
      for (const [name, script] of ATTEMPTS) {
        const learned = await page.evaluate<string>(script);
        expect([origin, name, learned === '' ? 'nothing' : learned]).toEqual([origin, name, 'nothing']);
      }
      expect(answers.filter((answer) => !/^40[35] /.test(answer))).toEqual([]);
      await page.close();
    }
  });

  test('that has given its own name this address is not answered', async () => {
    const { browser } = await openBrowser();
    const page = await browser.newPage();
    const response = await page.goto('http://evil.example:8080/services');
    expect(response?.status()).toBe(421);
    const asked = `fetch('/v1/services').then((r) => r.status)`;
    expect(await page.evaluate<number>(asked)).toBe(421);
  });

  test('may have a link to it, and no hold of the window', async () => {
    const { browser } = await openBrowser();
    const page = await browser.newPage();
    await page.goto('http://evil.example:9000/');
    const opened = page.context().waitForEvent('page');
    await page.evaluate(`window.held = window.open('${TARGET}/services'); 0`);
    const window = await opened;
    await window.locator('main h1').first().waitFor();
    expect(await window.title()).toContain('Junction');
    expect(await window.evaluate<boolean>('window.opener === null')).toBe(true);
    expect(await page.evaluate<boolean>('window.held.closed')).toBe(true);
    await page.getByText('look').click();
    await page.locator('main h1').first().waitFor();
    expect(page.url()).toBe(`${TARGET}/services`);
  });
});
