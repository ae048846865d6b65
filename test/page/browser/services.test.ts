/** The table of services in a real browser: found, filtered and sorted; by keyboard; and as the cluster changes. */
import { describe, expect, test } from 'vitest';
import { useInLab } from '../../e2e/support/use.ts';
import { useLab } from '../../lab/requireLab.ts';
import { Demo } from './support/demo.ts';
import type { Tab } from './support/tab.ts';
import { useBrowser } from './support/use.ts';

const ROWS = '.services-body [role=row]';

/** Names of the rows, without the namespace. */
async function shown(tab: Tab): Promise<readonly string[]> {
  const names = await tab.page.locator(`${ROWS} [role=rowheader]`).allInnerTexts();
  return names.map((name) => name.replace(/^shop\//, ''));
}

function rowOf(tab: Tab, service: string) {
  return tab.page.locator(ROWS).filter({ has: tab.page.getByRole('link', { name: service, exact: true }) });
}

async function focused(tab: Tab): Promise<string> {
  return tab.evaluate('document.activeElement.getAttribute("role") ?? document.activeElement.tagName');
}

describe('services', () => {
  const lab = useLab();
  const demo = useInLab(() => Demo.start(lab()));
  const open = useBrowser(demo);

  test('are those of the command, in its words', async () => {
    const tab = await open('/services', { width: 2000 });
    const printed = await demo().command('services', '--output', 'wide');
    const [, ...lines] = printed.trimEnd().split('\n');
    expect(await shown(tab)).toEqual(lines.map((line) => line.split(/\s+/)[0]?.replace('shop/', '')));
    for (const line of lines) {
      const [service = '', type = '', addresses = ''] = line.trim().split(/\s{2,}/);
      const text = (await rowOf(tab, service).innerText()).replaceAll(/\s+/g, ' ');
      expect(text).toContain(type);
      expect(text).toContain(addresses.replaceAll(',', ', '));
      const state = /\b(?:ok|no endpoints.*|refused.*|not served.*|partly served.*)$/.exec(line)?.[0] ?? '?';
      expect(text.endsWith(state.replace(': ', ' '))).toBe(true);
    }
  });

  test('are asked for once, and after a change only those that changed', async () => {
    const tab = await open('/services');
    await rowOf(tab, 'shop/idle').getByText('no endpoints').waitFor();
    const questions = (): readonly string[] => tab.asked.filter((path) => path.startsWith('/v1/services'));
    expect(questions()).toEqual(['/v1/services?format=table']);
    tab.asked.length = 0;
    await demo().edit('idle.yaml', (text) => text.replace('ready: false', 'ready: true'));
    try {
      await rowOf(tab, 'shop/idle').getByText('ok', { exact: true }).waitFor();
      expect(questions()).toContain('/v1/services?service=shop%2Fidle');
      expect(questions().filter((path) => path.includes('format=table'))).toEqual([]);
    } finally {
      await demo().edit('idle.yaml', (text) => text.replace('ready: true', 'ready: false'));
    }
    await rowOf(tab, 'shop/idle').getByText('no endpoints').waitFor();
  });

  test('that are added and deleted come and go in their place', async () => {
    const tab = await open('/services');
    const before = await shown(tab);
    await demo().write(
      'extra.yaml',
      [
        'apiVersion: v1',
        'kind: Service',
        'metadata: { name: between, namespace: shop }',
        'spec: { clusterIP: 10.96.0.99, ports: [{ port: 80 }] }',
        '',
      ].join('\n'),
    );
    await expect.poll(() => shown(tab)).toEqual([...before, 'between'].sort());
    await demo().remove('extra.yaml');
    await expect.poll(() => shown(tab)).toEqual(before);
  });

  test('are found as one types, and the address says so', async () => {
    const tab = await open('/services');
    const search = tab.page.getByRole('searchbox');
    await search.fill('203.0.113');
    expect(await shown(tab)).toEqual(['web']);
    await expect.poll(() => tab.address).toBe('/services?search=203.0.113');
    await search.fill('10.96.0.40:80');
    expect(await shown(tab)).toEqual(['cart']);
    // By an endpoint, which the table does not have.
    await search.fill('10.244.2.12');
    await expect.poll(() => shown(tab)).toContain('idle');
    await search.fill('<img src=x onerror=alert(1)>');
    await tab.says(/^None of \d services\.$/);
    await tab.page.getByRole('button', { name: 'Show all' }).click();
    expect((await shown(tab)).length).toBeGreaterThan(6);
  });

  test('are filtered and sorted, and the back button takes each step back', async () => {
    const tab = await open('/services?search=shop');
    await tab.page.getByRole('button', { name: /^no endpoints/ }).click();
    expect(await shown(tab)).toEqual(['idle']);
    expect(tab.address).toBe('/services?search=shop&state=no+endpoints');
    await tab.page.goBack();
    await expect.poll(() => shown(tab)).toContain('web');
    await tab.page.getByRole('combobox', { name: 'Type' }).selectOption('NodePort');
    expect(await shown(tab)).toEqual(['catalog', 'shopfront']);
    await tab.page.getByRole('button', { name: 'Service', exact: true }).click();
    expect(await shown(tab)).toEqual(['shopfront', 'catalog']);
    expect(tab.address).toBe('/services?search=shop&type=NodePort&sort=-service');
    await tab.page.goBack();
    await expect.poll(() => shown(tab)).toEqual(['catalog', 'shopfront']);
    const again = await open('/services?first=problems');
    expect((await shown(again))[0]).toBe('idle');
  });

  test('by keyboard: searched, walked through, opened, and come back to', async () => {
    const tab = await open('/services');
    const { keyboard } = tab.page;
    await keyboard.press('/');
    await keyboard.type('shop/');
    await keyboard.press('ArrowDown');
    expect(await focused(tab)).toBe('grid');
    await keyboard.press('End');
    await keyboard.press('ArrowUp');
    const selected = tab.page.locator(`${ROWS}[aria-selected=true]`);
    expect(await selected.getByRole('rowheader').innerText()).toBe('shop/shopfront');
    await tab.page.getByRole('region', { name: 'Selected service' }).getByText('198.51.100.20').waitFor();
    const active = await tab.page.getByRole('grid').getAttribute('aria-activedescendant');
    expect(active).toBe(await selected.getAttribute('id'));
    await keyboard.press('Enter');
    await expect.poll(() => tab.address).toBe('/services/shop/shopfront');
    await tab.page.getByRole('heading', { level: 1, name: 'shop/shopfront' }).waitFor();
    expect(await focused(tab)).toBe('MAIN');
    await tab.page.goBack();
    await selected.waitFor();
    expect(await focused(tab)).toBe('grid');
    await keyboard.press('Escape');
    await selected.waitFor({ state: 'detached' });
  });

  test('a hidden tab asks for nothing, and sees all that happened when it is looked at', async () => {
    const tab = await open('/services');
    const hide = (isHidden: boolean): Promise<unknown> =>
      tab.evaluate(
        `Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${isHidden} }); document.dispatchEvent(new Event('visibilitychange'))`,
      );
    await rowOf(tab, 'shop/idle').getByText('no endpoints').waitFor();
    await hide(true);
    tab.asked.length = 0;
    await demo().edit('idle.yaml', (text) => text.replace('ready: false', 'ready: true'));
    try {
      await expect.poll(() => demo().command('services', 'shop/idle')).toMatch(/\bok$/m);
      expect([tab.asked, await rowOf(tab, 'shop/idle').innerText()]).toEqual([
        [],
        expect.stringContaining('no endpoints'),
      ]);
      await hide(false);
      await rowOf(tab, 'shop/idle').getByText('ok', { exact: true }).waitFor();
    } finally {
      await demo().edit('idle.yaml', (text) => text.replace('ready: true', 'ready: false'));
    }
  });

  test('a proxy that is away is said to be, with what was true; and one that is back', async () => {
    const tab = await open('/services', { expected: /Failed to load resource/ });
    const live = tab.page.getByRole('banner').getByRole('status');
    await live.getByText('connected').waitFor();
    await demo().stop();
    try {
      await live.getByText(/^stale/).waitFor();
      await tab.page.getByText('The proxy does not send changes.').waitFor();
      expect(await shown(tab)).toContain('web');
      await demo().edit('idle.yaml', (text) => text.replace('ready: false', 'ready: true'));
    } finally {
      await demo().start();
    }
    await live.getByText('connected').waitFor();
    await rowOf(tab, 'shop/idle').getByText('ok', { exact: true }).waitFor();
    await demo().edit('idle.yaml', (text) => text.replace('ready: true', 'ready: false'));
  });

  test.each([360, 800, 2560])('at %i pixels nothing is beside the screen', async (width) => {
    const tab = await open('/services?row=shop/web', { width });
    await rowOf(tab, 'shop/web').getByText('10.96.0.20').waitFor();
    expect(await tab.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
  });
});
