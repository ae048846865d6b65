/** Everybody can use it: by keyboard, by screen reader, dark and light, on a small screen and on a large one. */
import { describe, expect, test } from 'vitest';
import { useInLab } from '../../e2e/support/use.ts';
import { useLab } from '../../lab/requireLab.ts';
import { violations } from './support/axe.ts';
import { Demo } from './support/demo.ts';
import { walkByTab } from './support/keyboard.ts';
import { overflowAt } from './support/overflow.ts';
import { useBrowser } from './support/use.ts';

const STATES = [
  '/services',
  '/services?search=no-service-has-this-name',
  '/services/shop/web',
  '/services/shop/idle',
  '/services/shop/no-such-service',
  '/packet',
  '/packet?from=outside&to=svc/shop/web',
  '/packet?from=198.18.0.10&to=203.0.113.10:80',
  '/syncs',
  '/node',
  '/no/such/view',
];

const WIDTHS = [360, 2560];

describe('every view', () => {
  const lab = useLab();
  const demo = useInLab(() => Demo.start(lab()));
  const open = useBrowser(demo);

  test.each(STATES)('%s', async (path) => {
    // A service that is not there is answered with 404, which Chromium notes.
    const tab = await open(path, { expected: /status of 40[04]/ });
    expect(await tab.page.getByRole('heading', { level: 1 }).count()).toBe(1);
    expect(await violations(tab)).toEqual([]);
    const { missed, unseen, reached } = await walkByTab(tab);
    expect({ missed, unseen }).toEqual({ missed: [], unseen: [] });
    expect(reached).toBeGreaterThan(5);
    await tab.page.emulateMedia({ colorScheme: 'dark' });
    expect(await violations(tab)).toEqual([]);
    for (const width of WIDTHS) expect([width, await overflowAt(tab, width)]).toEqual([width, '']);
  });

  test('nothing moves for those who asked for that', async () => {
    for (const path of ['/services/shop/web', '/syncs']) {
      const tab = await open(path, { reducedMotion: true });
      expect(
        await tab.evaluate<number>(
          `document.getAnimations().filter(({ playState }) => playState === 'running').length`,
        ),
      ).toBe(0);
      expect(
        await tab.evaluate<readonly string[]>(`[...document.querySelectorAll('*')]
          .filter((e) => { const s = getComputedStyle(e); return parseFloat(s.transitionDuration) > 0.01 || s.animationName !== 'none' && parseFloat(s.animationDuration) > 0.01; })
          .map((e) => e.outerHTML.slice(0, 100))`),
      ).toEqual([]);
    }
  });

  test('colours are the chosen ones, and stay', async () => {
    const tab = await open('/services', { scheme: 'light' });
    const background = (): Promise<string> =>
      tab.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor');
    const choose = (name: string): Promise<void> => tab.page.getByTitle(name, { exact: true }).click();
    const light = await background();
    await choose('Dark');
    const dark = await background();
    expect(dark).not.toBe(light);
    await tab.page.reload();
    await tab.isShown();
    expect(await background()).toBe(dark);
    await choose('As the system');
    expect(await background()).toBe(light);
  });
});
