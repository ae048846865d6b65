/** What is around every view: colours, keys, where one was, and addresses that lead nowhere. */
import { describe, expect, test } from 'vitest';
import { useInLab } from '../../e2e/support/use.ts';
import { useLab } from '../../lab/requireLab.ts';
import { Demo } from './support/demo.ts';
import { useBrowser } from './support/use.ts';

describe('the frame', () => {
  const lab = useLab();
  const demo = useInLab(() => Demo.start(lab()));
  const open = useBrowser(demo);

  test('says which node it is, and in which mode', async () => {
    const tab = await open('/node');
    await expect.poll(() => tab.text('header')).toContain('node1 nftables');
  });

  test('colours are the system’s, or those that were chosen, and stay so', async () => {
    const tab = await open('/services', { scheme: 'dark' });
    const background = (): Promise<string> =>
      tab.evaluate('getComputedStyle(document.documentElement).backgroundColor');
    const dark = await background();
    await tab.page.getByRole('radio', { name: 'Light' }).check({ force: true });
    const light = await background();
    expect(light).not.toBe(dark);
    await tab.goTo('/packet');
    expect(await background()).toBe(light);
    await tab.page.getByRole('radio', { name: 'Dark' }).check({ force: true });
    expect(await background()).toBe(dark);
    await tab.page.getByRole('radio', { name: 'As the system' }).check({ force: true });
    await tab.page.emulateMedia({ colorScheme: 'light' });
    expect(await background()).toBe(light);
  });

  test('keys lead to every view, are shown, and can be switched off', async () => {
    const tab = await open('/services');
    const { keyboard } = tab.page;
    for (const [key, address] of [
      ['p', '/packet'],
      ['y', '/syncs'],
      ['n', '/node'],
      ['s', '/services'],
    ] as const) {
      await keyboard.press('g');
      await keyboard.press(key);
      await expect.poll(() => tab.address).toBe(address);
    }
    await keyboard.press('?');
    const dialog = tab.page.getByRole('dialog', { name: 'Keyboard shortcuts' });
    await dialog.waitFor();
    await dialog.getByRole('checkbox').uncheck();
    await keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    await keyboard.press('g');
    await keyboard.press('n');
    expect(tab.address).toBe('/services');
  });

  test('/ goes to the search of services from a view that has none', async () => {
    const tab = await open('/node');
    await tab.page.keyboard.press('/');
    await expect.poll(() => tab.address).toBe('/services');
    await expect.poll(() => tab.evaluate('document.activeElement.type')).toBe('search');
    await tab.page.keyboard.type('g p');
    await expect.poll(() => tab.address).toBe('/services?search=g+p');
  });

  test('back goes back to the same lines', async () => {
    const tab = await open('/services', { height: 320 });
    const scrolled = (): Promise<number> => tab.evaluate('scrollY');
    await tab.evaluate('scrollTo(0, 100)');
    await expect.poll(scrolled).toBe(100);
    // Playwright would scroll to it first.
    await tab.evaluate(`document.querySelector('a[href="/services/shop/web"]').click()`);
    await tab.page.getByRole('heading', { level: 1, name: 'shop/web' }).waitFor();
    expect(await scrolled()).toBe(0);
    await tab.page.goBack();
    await expect.poll(scrolled).toBe(100);
    await tab.page.reload();
    await expect.poll(scrolled).toBe(100);
  });

  test('an address that leads nowhere says so, and where to go', async () => {
    const tab = await open('/services/one/two/three');
    await tab.says('There is nothing at this address');
    await tab.page.getByRole('link', { name: 'All services' }).click();
    await expect.poll(() => tab.address).toBe('/services');
  });
});
