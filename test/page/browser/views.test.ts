/** Every view of the page in a real browser, on the demo's cluster. */
import { describe, expect, test } from 'vitest';
import { useInLab } from '../../e2e/support/use.ts';
import { useLab } from '../../lab/requireLab.ts';
import { Demo } from './support/demo.ts';
import { tabTo } from './support/keyboard.ts';
import { useBrowser } from './support/use.ts';

describe('the page of a running proxy', () => {
  const lab = useLab();
  const demo = useInLab(() => Demo.start(lab()));
  const open = useBrowser(demo);

  test('a link leads to each view, and back', async () => {
    const tab = await open('/');
    for (const view of ['Packet', 'Syncs', 'Node', 'Services']) {
      await tab.page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: view }).click();
      await expect.poll(() => tab.address).toBe(`/${view.toLowerCase()}`);
      await tab.isShown();
      expect(await tab.page.title()).toBe(`${view} – Junction`);
    }
    await tab.page.goBack();
    await expect.poll(() => tab.address).toBe('/node');
    await tab.page.getByRole('heading', { level: 1, name: 'Node' }).waitFor();
    await tab.page.goForward();
    await tab.says('shop/web');
  });

  test('each address leads to its view, and nothing to one that there is not', async () => {
    for (const [path, title, words] of [
      ['/services?search=cart', 'Services', 'shop/cart'],
      ['/services/shop/web', 'shop/web', '203.0.113.10:80'],
      ['/packet?from=outside&to=svc/shop/web', 'Packet', 'the cluster IP of shop/web:http forwards to'],
      ['/syncs', 'Syncs', 'full'],
      ['/node', 'Node', 'packets walked'],
      ['/no/such/view', 'Not found', 'All services'],
    ] as const) {
      const tab = await open(path);
      await tab.says(words);
      expect(await tab.page.title()).toBe(`${title} – Junction`);
      expect(tab.address).toBe(path);
      await tab.close();
    }
  });

  test('the keyboard alone leads through every view', async () => {
    const tab = await open('/services');
    const { keyboard } = tab.page;
    await keyboard.press('Tab');
    await keyboard.press('Enter');
    expect(await tab.evaluate<string>('document.activeElement.id')).toBe('main');

    await keyboard.press('/');
    await keyboard.type('web');
    await tab.page.getByRole('status').filter({ hasText: '1 of 7 services' }).waitFor();
    await keyboard.press('ArrowDown');
    await keyboard.press('ArrowDown');
    await keyboard.press('Enter');
    await expect.poll(() => tab.address).toBe('/services/shop/web');
    await tab.isShown();

    await tabTo(tab, '[data-box^="source outside"]');
    await tab.says('outside: not in --cluster-cidr 10.244.0.0/16, no address of this node');
    await tabTo(tab, 'main a[href^="/packet"]');
    await keyboard.press('Enter');
    await expect.poll(() => tab.address).toMatch(/^\/packet\?from=/);
    await tab.isShown();

    await tabTo(tab, 'main form input');
    await keyboard.press('Control+a');
    await keyboard.type('198.18.0.10');
    await keyboard.press('Tab');
    await tabTo(tab, 'main form input[role=combobox]');
    await keyboard.press('Control+a');
    await keyboard.type('203.0.113.10:80');
    await keyboard.press('Enter');
    await tab.says('do not contain 198.18.0.10');

    await tabTo(tab, 'a.brand, main button');
    await keyboard.press('g');
    await keyboard.press('y');
    await expect.poll(() => tab.address).toBe('/syncs');
    await tab.isShown();
    await keyboard.press('g');
    await keyboard.press('n');
    await expect.poll(() => tab.address).toBe('/node');
    await tab.isShown();
    await tabTo(tab, 'main button');
    expect(await tab.evaluate<string>('document.activeElement.textContent')).toContain('Run again');
  });
});
