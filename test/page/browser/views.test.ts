/** Every view of the page in a real browser, on the demo's cluster. */
import { describe, expect, test } from 'vitest';
import { useInLab } from '../../e2e/support/use.ts';
import { useLab } from '../../lab/requireLab.ts';
import { Demo } from './support/demo.ts';
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
});
