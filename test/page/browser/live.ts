/** What is shown is what is: while objects change, where there are 10,000, and while the proxy is away. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { writeExampleBundle } from '../../cli/bundleFile.ts';
import { FULL_STATUS } from '../../support/fullStatus.ts';
import { expectWordsOfExplain } from './packet.ts';
import { isEmpty, largeName, writeLargeCluster } from './support/largeCluster.ts';
import type { Tab } from './support/tab.ts';
import type { Stage } from './support/use.ts';

const SERVICES = 10_000;
const EMPTY = Array.from({ length: SERVICES }, (_, index) => index).filter(isEmpty).length;

const NEW_SERVICE = `apiVersion: v1
kind: Service
metadata: {name: newcomer, namespace: shop}
spec: {type: ClusterIP, clusterIP: 10.111.0.99, ports: [{name: http, port: 80}]}
`;

const state = (tab: Tab, words: string): Promise<void> =>
  tab.page.locator('header .live', { hasText: words }).waitFor();

const count = (tab: Tab, text: string): Promise<void> =>
  tab.page.getByRole('status').filter({ hasText: text }).first().waitFor();

const isGone = (tab: Tab): Promise<void> =>
  tab.main().getByRole('link', { name: 'shop/newcomer' }).waitFor({ state: 'detached' });

/** Chromium without a window hides no tab: the page is made to believe it. */
const look = (tab: Tab, isHidden: boolean): Promise<unknown> =>
  tab.evaluate(`Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${isHidden} });
    Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => ${isHidden ? "'hidden'" : "'visible'"} });
    document.dispatchEvent(new Event('visibilitychange'))`);

export function live({ demo, open }: Stage): void {
  test('a service comes, changes and goes, in every view that shows it; only it is asked for again', async () => {
    const [services, service, syncs] = await Promise.all([
      open('/services'),
      open('/services/shop/newcomer', { expected: /status of 40[04]/ }),
      open('/syncs'),
    ]);
    await state(services, 'connected');
    await services.says('shop/web');
    services.asked.length = 0;
    await demo().write('newcomer.yaml', NEW_SERVICE);
    await services.says('shop/newcomer');
    await service.says('10.111.0.99:80');
    await syncs.says(/shop\/newcomer/);
    await demo().edit('newcomer.yaml', (text) => text.replace('0.99', '0.98'));
    await services.says('10.111.0.98');
    await service.says('10.111.0.98:80');
    await demo().remove('newcomer.yaml');
    await isGone(services);
    await service.says('There is no Service "shop/newcomer"');
    const asked = services.asked.filter((path) => path.startsWith('/v1/services'));
    expect(new Set(asked)).toEqual(new Set(['/v1/services?service=shop%2Fnewcomer']));
  });

  test('a hidden tab holds no stream and asks nothing; it is up to date when somebody looks again', async () => {
    const [tab, seen] = await Promise.all([open('/services'), open('/services')]);
    await state(tab, 'connected');
    const ended = tab.page.waitForEvent('requestfailed', (request) => request.url().includes('/v1/watch'));
    await look(tab, true);
    await ended;
    tab.asked.length = 0;
    await demo().write('newcomer.yaml', NEW_SERVICE);
    // The other tab has asked for it and shows it: this one would have, too.
    await seen.says('shop/newcomer');
    expect([tab.asked, await tab.main().getByText('shop/newcomer').count()]).toEqual([[], 0]);
    await look(tab, false);
    await tab.says('shop/newcomer');
    await state(tab, 'connected');
    await demo().remove('newcomer.yaml');
  });

  test('10,000 services: the rows that are seen, found, filtered, and the last a key away', async () => {
    const folder = join(demo().folder, 'large');
    writeLargeCluster(folder, SERVICES);
    const link = await demo().ui(`--manifests=${folder}`, '--hostname-override=node1');
    const tab = await open('/services', { origin: new URL(link).origin });
    const rows = tab.main().getByRole('grid').getByRole('row');
    const search = tab.page.getByRole('searchbox').first();
    await count(tab, '10,000 services');
    expect(await rows.count()).toBeLessThan(200);
    for (const text of ['service-9900', '10.130.38.172', ':30001']) {
      await search.fill(text);
      await count(tab, '1 of 10,000 services');
    }
    // The second with a node port.
    await tab.says(largeName(51).split('/')[1] ?? '');
    await search.fill('');
    await tab.page
      .getByRole('group', { name: 'State' })
      .getByRole('button', { name: 'no endpoints' })
      .click();
    await count(tab, `${EMPTY} of 10,000 services`);
    await tab.page.getByRole('button', { name: 'Clear' }).click();
    await tab.page.getByLabel('Problems first').check();
    await expect.poll(() => rows.nth(1).innerText()).toContain('no endpoints');
    await tab.page.getByLabel('Problems first').uncheck();

    const grid = tab.page.getByRole('grid');
    await grid.press('End');
    await expect.poll(() => tab.address).toContain('row=team-99%2Fservice-9999');
    await grid.press('Enter');
    await tab.page.getByRole('heading', { level: 1, name: 'team-99/service-9999' }).waitFor();
    await tab.page.goBack();
    await rows.filter({ hasText: 'service-9999' }).first().waitFor();
  });

  test('a bundle: every view, and it says that it is a recording', async () => {
    const path = await writeExampleBundle(join(demo().folder, 'b.json.gz'), [
      { kind: 'status', status: FULL_STATUS },
      { kind: 'doctor', report: { node: 'node1', at: 1, hasProblems: false, groups: [], mode: 'iptables' } },
    ]);
    const tab = await open('', { origin: new URL(await demo().ui(path)).origin });
    for (const [view, title] of [
      ['/services/shop/web', 'shop/web'],
      ['/packet?from=outside&to=203.0.113.10:80', 'Packet'],
      ['/syncs', 'Syncs'],
      ['/node', 'Node'],
      ['/services', 'Services'],
    ] as const) {
      await tab.goTo(view);
      expect(await tab.page.title()).toBe(`${title} – Junction`);
    }
    expect(await tab.text('header')).toMatch(/a recording of .* on node1/);
    await tab.says('shop/web');
  });

  test('a proxy that is away is said to be, with what was true; it comes back, in another mode', async () => {
    const tab = await open('/services', { expected: /Failed to load resource|net::ERR/ });
    await state(tab, 'connected');
    await demo().stopProxy();
    await state(tab, 'stale since');
    expect(await tab.text()).toContain('shop/web');
    await demo().write('newcomer.yaml', NEW_SERVICE);
    await demo().startProxy('iptables');
    await state(tab, 'connected');
    await tab.says('shop/newcomer');
    await demo().remove('newcomer.yaml');
    await isGone(tab);
    await expectWordsOfExplain(demo(), tab, '198.18.0.10', '203.0.113.10:80');
  });
}
