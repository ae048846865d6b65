/** What is shown is what is, while manifests change, while the proxy restarts, and not at all while nobody looks. */
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { useInLab } from '../../e2e/support/use.ts';
import { useLab } from '../../lab/requireLab.ts';
import { Demo } from './support/demo.ts';
import type { Tab } from './support/tab.ts';
import { useBrowser } from './support/use.ts';

const NEW_SERVICE = `apiVersion: v1
kind: Service
metadata: {name: newcomer, namespace: shop}
spec: {type: ClusterIP, clusterIP: 10.96.0.99, ports: [{name: http, port: 80}]}
`;

/** The proxy is away: the browser says that nothing answers. */
const GONE = /ERR_(?:CONNECTION_REFUSED|CONNECTION_RESET|EMPTY_RESPONSE|INCOMPLETE_CHUNKED_ENCODING)/;

const state = (tab: Tab, words: string): Promise<void> =>
  tab.page.locator('header .live', { hasText: words }).waitFor();

const isGone = (tab: Tab): Promise<void> =>
  tab.main().getByRole('link', { name: 'shop/newcomer' }).waitFor({ state: 'detached' });

/** Chromium without a window hides no tab: the page is made to believe it. */
const look = (tab: Tab, isHidden: boolean): Promise<unknown> =>
  tab.evaluate(`Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${isHidden} });
    Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => ${isHidden ? "'hidden'" : "'visible'"} });
    document.dispatchEvent(new Event('visibilitychange'))`);

describe('the page of a running proxy', () => {
  const lab = useLab();
  const demo = useInLab(() => Demo.start(lab()));
  const open = useBrowser(demo);

  test('a service comes, changes and goes, in every view that shows it', async () => {
    const [services, service, syncs] = await Promise.all([
      open('/services'),
      open('/services/shop/newcomer', { expected: /status of 40[04]/ }),
      open('/syncs'),
    ]);
    await state(services, 'connected');
    await demo().write('newcomer.yaml', NEW_SERVICE);
    await services.says('shop/newcomer');
    await service.says('10.96.0.99:80');
    await syncs.says(/shop\/newcomer/);
    await demo().edit('newcomer.yaml', (text) => text.replace('10.96.0.99', '10.96.0.98'));
    await services.says('10.96.0.98');
    await service.says('10.96.0.98:80');
    await demo().remove('newcomer.yaml');
    await isGone(services);
    await expect.poll(() => service.text()).toContain('There is no Service "shop/newcomer"');
  });

  test('an endpoint that goes away leaves the drawing', async () => {
    const tab = await open('/services/shop/api');
    await tab.says('10.244.2.12:8080');
    await demo().edit('api.yaml', (text) => text.replace(/ {2}- addresses: \[10\.244\.2\.12\][^]*$/, ''));
    await expect.poll(() => tab.text('section[aria-labelledby=path-title]')).not.toContain('10.244.2.12');
  });

  test('after a restart of the proxy it connects again, and shows what is new', async () => {
    const tab = await open('/services', { expected: GONE });
    await state(tab, 'connected');
    await demo().stop();
    await state(tab, 'stale since');
    expect(await tab.text()).toContain('shop/web');
    await demo().write('newcomer.yaml', NEW_SERVICE);
    await demo().start();
    await state(tab, 'connected');
    await tab.says('shop/newcomer');
    await demo().remove('newcomer.yaml');
    await isGone(tab);
  });

  test('a hidden tab holds no stream and asks nothing; it is up to date when somebody looks again', async () => {
    const tab = await open('/services');
    await state(tab, 'connected');
    const ended = tab.page.waitForEvent('requestfailed', (request) => request.url().includes('/v1/watch'));
    await look(tab, true);
    await ended;
    const asked = tab.asked.length;
    await demo().write('newcomer.yaml', NEW_SERVICE);
    await expect.poll(() => demo().command('services')).toContain('shop/newcomer');
    // Longer than the page waits before it asks again.
    await sleep(1000);
    expect(tab.asked.slice(asked)).toEqual([]);
    await look(tab, false);
    await tab.says('shop/newcomer');
    await state(tab, 'connected');
    await demo().remove('newcomer.yaml');
  });
});
