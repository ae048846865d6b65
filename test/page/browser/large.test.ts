/** 30,000 services: found, filtered, reached by keys, and up to date. */
import { describe, expect, test } from 'vitest';
import { useInLab } from '../../e2e/support/use.ts';
import { useLab } from '../../lab/requireLab.ts';
import { Demo } from './support/demo.ts';
import { isEmpty, largeName, writeLargeCluster } from './support/largeCluster.ts';
import type { Tab } from './support/tab.ts';
import { useBrowser } from './support/use.ts';

const SERVICES = 30_000;
const SIZES = { services: SERVICES, endpoints: 3 };
const EMPTY = Array.from({ length: SERVICES }, (_, index) => index).filter(isEmpty).length;
/** Ten times what the page promises on a quiet machine. */
const LONGEST_KEY_MS = 500;

const NEW_SERVICE = `apiVersion: v1
kind: Service
metadata: {name: a-newcomer, namespace: a-team}
spec: {type: ClusterIP, clusterIP: 10.111.0.99, ports: [{name: http, port: 80}]}
`;

/** How long the page computed for each key. */
const OBSERVE = `window.keys = [];
new PerformanceObserver((list) => {
  for (const { name, processingStart, processingEnd } of list.getEntries())
    if (name === 'input') window.keys.push(processingEnd - processingStart);
}).observe({ type: 'event', durationThreshold: 16 });`;

const count = (tab: Tab, text: string): Promise<void> =>
  tab.page.getByRole('status').filter({ hasText: text }).first().waitFor();
const rows = (tab: Tab) => tab.main().getByRole('grid').getByRole('row');
const search = (tab: Tab) => tab.page.getByRole('searchbox').first();

describe('the page of a proxy with 30,000 services', () => {
  const lab = useLab();
  const demo = useInLab(() => Demo.start(lab(), { fill: (folder) => writeLargeCluster(folder, SIZES) }));
  const open = useBrowser(demo);

  test('shows the rows that are seen, and finds any of them', async () => {
    const tab = await open('/services');
    await count(tab, '30,000 services');
    expect(await rows(tab).count()).toBeLessThan(200);
    await tab.evaluate(OBSERVE);
    await search(tab).pressSequentially('service-29998');
    await count(tab, '1 of 30,000 services');
    await tab.says(largeName(29_998).split('/')[1] ?? '');
    expect(Math.max(0, ...(await tab.evaluate<readonly number[]>('window.keys')))).toBeLessThan(
      LONGEST_KEY_MS,
    );
    await expect.poll(() => tab.address).toBe('/services?search=service-29998');
    await search(tab).fill('10.130.117.46');
    await count(tab, '1 of 30,000 services');
    await search(tab).fill(':30001');
    await count(tab, '1 of 30,000 services');
    await search(tab).fill('');
    await count(tab, '30,000 services');
  });

  test('filters and puts problems first, by an address that can be sent', async () => {
    const tab = await open('/services');
    await tab.page
      .getByRole('group', { name: 'State' })
      .getByRole('button', { name: 'no endpoints' })
      .click();
    await count(tab, `${EMPTY} of 30,000 services`);
    const address = tab.address;
    const other = await open(address);
    await count(other, `${EMPTY} of 30,000 services`);
    await tab.page.getByRole('button', { name: 'Clear' }).click();
    await tab.page.getByLabel('Problems first').check();
    await expect.poll(() => rows(tab).nth(1).innerText()).toContain('no endpoints');
    await tab.page.goBack();
    await tab.page.goBack();
    await count(tab, `${EMPTY} of 30,000 services`);
  });

  test('the last one is a key away, opens by another, and is still there when one comes back', async () => {
    const tab = await open('/services');
    await count(tab, '30,000 services');
    const grid = tab.page.getByRole('grid');
    await grid.focus();
    await grid.press('End');
    const last = 'team-99/service-9999';
    await expect.poll(() => tab.address).toBe(`/services?row=${encodeURIComponent(last)}`);
    await grid.press('Enter');
    await tab.page.getByRole('heading', { level: 1, name: last }).waitFor();
    await tab.page.goBack();
    await rows(tab).filter({ hasText: 'service-9999' }).first().waitFor();
  });

  test('a new service is there without loading the table again', async () => {
    const tab = await open('/services');
    await count(tab, '30,000 services');
    const asked = tab.asked.length;
    await demo().write('newcomer.yaml', NEW_SERVICE);
    await count(tab, '30,001 services');
    await tab.says('a-newcomer');
    expect(tab.asked.slice(asked).filter((path) => /^\/v1\/services(?!\?service=)/.test(path))).toEqual([]);
    await demo().remove('newcomer.yaml');
    await count(tab, '30,000 services');
  });
});
