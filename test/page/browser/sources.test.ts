/** The page in a real browser where no proxy serves it: `npm start`, `junction ui` on manifests that change, and on a bundle. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { writeExampleBundle } from '../../cli/bundleFile.ts';
import { UiProgram } from '../../cli/uiProgram.ts';
import { ROOT } from '../../support/checkout.ts';
import { edit } from '../../lab/demo/edit.ts';
import { type BuiltDemo, copyDemo, RunningDemo } from '../../lab/demo/program.ts';
import { requireLab } from '../../lab/requireLab.ts';
import { FULL_STATUS } from '../../support/fullStatus.ts';
import { type Chromium, startChromium, whyNoChromium } from './support/chromium.ts';
import { Tab, type TabOptions } from './support/tab.ts';

const VIEWS = [
  '/services',
  '/services/shop/web',
  '/packet?from=outside&to=203.0.113.10:80',
  '/syncs',
  '/node',
];
const TITLES = ['Services', 'shop/web', 'Packet', 'Syncs', 'Node'].map((name) => `${name} – Junction`);
const REPORT = { node: 'node1', at: 1, hasProblems: false, groups: [] };
/** A second on a quiet machine. */
const SOON_MS = 10_000;

let chromium: Chromium | undefined;
beforeAll(async () => {
  if (whyNoChromium() === undefined) chromium = await startChromium();
});
afterAll(() => chromium?.close());
beforeEach((context) => {
  const text = whyNoChromium();
  if (text === undefined) return;
  // On CI that is a failure: there, skipped is untested.
  if (process.env['CI'] === 'true') throw new Error(text);
  context.skip(text);
});

async function open(link: string, path: string, options?: TabOptions): Promise<Tab> {
  if (!chromium) throw new Error('the browser is not up');
  const tab = await Tab.open(chromium, link.replace(/\/$/, ''), path, options);
  onTestFinished(async () => {
    expect(tab.problems).toEqual([]);
    await tab.close();
  });
  return tab;
}

async function titles(tab: Tab, paths: readonly string[]): Promise<readonly string[]> {
  const found: string[] = [];
  for (const path of paths) {
    await tab.goTo(path);
    found.push(await tab.page.title());
  }
  return found;
}

/** Returns how long it takes until the table has the text in the row of the service. */
async function untilRowSays(tab: Tab, service: string, text: string, change: () => void): Promise<number> {
  const row = tab.page.getByRole('row').filter({ hasText: service });
  const began = performance.now();
  change();
  await row.filter({ hasText: text }).waitFor();
  return performance.now() - began;
}

const folder = mkdtempSync(join(tmpdir(), 'junction-sources-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('manifests', () => {
  const start = async (): Promise<{ readonly ui: UiProgram; readonly manifests: string }> => {
    const manifests = mkdtempSync(join(folder, 'manifests-'));
    cpSync(`${ROOT}/examples`, manifests, { recursive: true });
    const view = ['--hostname-override=node1', '--cluster-cidr=10.244.0.0/16,fd00:244::/32'];
    return { ui: await UiProgram.serving([`--manifests=${manifests}`, ...view]), manifests };
  };

  test('every view, without an error', async () => {
    const { ui } = await start();
    const tab = await open(ui.link, '/services');
    await tab.says('shop/web');
    expect(await titles(tab, VIEWS)).toEqual(TITLES);
    await tab.says('a plan that is written nowhere');
  });

  test('a file that is saved shows in the table', async () => {
    const { ui, manifests } = await start();
    const tab = await open(ui.link, '/services');
    await tab.says('shop/idle');
    const path = join(manifests, 'idle.yaml');
    const ms = await untilRowSays(tab, 'shop/idle', 'ok', () =>
      writeFileSync(path, readFileSync(path, 'utf8').replace('ready: false', 'ready: true')),
    );
    expect(ms).toBeLessThan(SOON_MS);
  });
});

test('a bundle: every view, without an error, and it says that it is no live one', async () => {
  const path = await writeExampleBundle(join(folder, 'b.json.gz'), [
    { kind: 'status', status: FULL_STATUS },
    { kind: 'doctor', report: { ...REPORT, mode: 'iptables' } },
  ]);
  const ui = await UiProgram.serving([path]);
  const tab = await open(ui.link, '/services');
  await tab.says('shop/web');
  expect(await tab.text('header')).toMatch(/a recording of .* on node1/);
  expect(await titles(tab, VIEWS)).toEqual(TITLES);
});

describe('npm start', () => {
  let built: BuiltDemo;
  beforeAll(() => {
    built = copyDemo();
  });
  afterAll(() => built.remove());
  beforeEach((context) => requireLab(context));

  test('the link that comes first shows the services; an edited example moves them', async () => {
    const demo = RunningDemo.start(built, []);
    onTestFinished(() => void demo.child.kill('SIGKILL'));
    await demo.saying(/\n/);
    // Before Junction answers, and when it has ended, the browser says so of each question.
    const tab = await open(demo.link, '/services', { expected: /503|net::ERR/ });
    await tab.says('shop/idle');
    await demo.saying(/Ctrl-C: end/);
    const ms = await untilRowSays(tab, 'shop/idle', 'ok', () =>
      edit(built.examples, 'idle.yaml', (text) => text.replace('ready: false', 'ready: true')),
    );
    expect(ms).toBeLessThan(SOON_MS);
    demo.child.kill('SIGINT');
    expect(await demo.exited).toBe(0);
  });
});
