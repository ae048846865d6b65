/** The views of syncs and of the node: what happens in the lab is on them, in the words of `watch`, and can be chosen. */
import { describe, expect, test } from 'vitest';
import { eventText } from '../../../src/explain/events.ts';
import type { WatchEvent } from '../../../src/explain/types.ts';
import { useInLab } from '../../e2e/support/use.ts';
import { useLab } from '../../lab/requireLab.ts';
import { Demo } from './support/demo.ts';
import type { Tab } from './support/tab.ts';
import { useBrowser } from './support/use.ts';

const lines = (tab: Tab): Promise<readonly string[]> => tab.page.locator('.event-text').allInnerTexts();

describe('the page of a running proxy', () => {
  const lab = useLab();
  const demo = useInLab(() => Demo.start(lab()));
  const open = useBrowser(demo);
  const edit = (isReady: boolean): Promise<void> =>
    demo().edit('cart.yaml', (text) => text.replace(/ready: (?:true|false)/, `ready: ${isReady}`));

  test('each event is a line in the words of watch', async () => {
    const tab = await open('/syncs', { width: 2560 });
    await edit(false);
    await tab.says('EndpointSlice shop/cart-1: endpoint 10.244.1.11 not ready →');
    const events = await tab.evaluate<readonly WatchEvent[]>("fetch('/v1/events').then((r) => r.json())");
    expect(events.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['sync', 'change']));
    await expect.poll(() => lines(tab)).toEqual(events.map(eventText).toReversed());
    await tab.main().getByRole('link', { name: 'shop/cart' }).first().click();
    await expect.poll(() => tab.address).toBe('/services/shop/cart');
  });

  test('by kind and by service, and the address says so', async () => {
    const tab = await open('/syncs');
    await edit(true);
    await tab.says('endpoint 10.244.1.11 ready →');
    await tab.page.getByRole('button', { name: /^change / }).click();
    await expect.poll(async () => (await lines(tab)).every((line) => line.includes('→'))).toBe(true);
    await tab.page.getByRole('searchbox').fill('shop/nobody');
    await tab.says('No event is like that');
    await tab.page.getByRole('searchbox').fill('shop/c*');
    await tab.page.getByRole('radio', { name: '30 min' }).check({ force: true });
    await expect.poll(() => tab.address).toBe('/syncs?minutes=30&kind=change&service=shop%2Fc*');
    const again = await open(tab.address);
    await again.says('endpoint 10.244.1.11 ready →');
    expect(await again.page.getByRole('radio', { name: '30 min' }).isChecked()).toBe(true);
  });

  test('the keyboard goes from sync to sync, and the list shows what was then', async () => {
    const tab = await open('/syncs?minutes=30');
    const slider = tab.page.getByRole('slider');
    await slider.focus();
    await tab.page.keyboard.press('Home');
    await expect
      .poll(() => slider.getAttribute('aria-valuetext'))
      .toMatch(/^IPv4: .*planned in .*written in/);
    await expect.poll(() => tab.address).toMatch(/time=\d+-\d+/);
    await expect.poll(async () => (await lines(tab)).at(-1)).toMatch(/^full, .* start$/);
    await tab.page.keyboard.press('Escape');
    await expect.poll(() => tab.address).toBe('/syncs?minutes=30');
  });

  test('a bucket of latencies shows the changes in it', async () => {
    const tab = await open('/syncs?minutes=30');
    const bucket = tab.main().getByRole('button', { name: /: [1-9]\d* changes?/ });
    const name = (await bucket.first().textContent()) ?? '';
    await bucket.first().click();
    const count = Number(/: (\d+) change/.exec(name)?.[1]);
    await expect.poll(async () => (await lines(tab)).length).toBe(count);
    for (const line of await lines(tab)) expect(line).toMatch(/written .* after it was seen/);
  });

  test('what another program did is a mark of its own', async () => {
    const tab = await open('/syncs?minutes=1');
    await lab().host('node1').run(['nft', 'delete', 'table', 'ip', 'junction']);
    await tab.says(/^nft \(pid \d+\) changed .*; repaired in/);
    await expect.poll(() => tab.page.locator('svg .sync-mark-repaired').count()).toBeGreaterThan(1);
    expect(await tab.text('.timeline-says')).toMatch(/\d repair/);
  });

  test('paused, it stays as it is', async () => {
    const tab = await open('/syncs');
    await tab.page.getByRole('button', { name: 'Pause' }).click();
    const before = await lines(tab);
    await edit(false);
    await tab.page.getByRole('button', { name: /^Resume \d+ new events?$/ }).waitFor();
    expect(await lines(tab)).toEqual(before);
    await tab.page.getByRole('button', { name: /^Resume/ }).click();
    await expect.poll(async () => (await lines(tab))[0]).not.toBe(before[0]);
  });

  test('a problem of a manifest is on the node’s view, with file and line, until it is gone', async () => {
    const tab = await open('/node');
    await demo().write(
      'broken.yaml',
      'apiVersion: v1\nkind: Service\nmetadata: {name: Bad_, namespace: shop}\n',
    );
    const problem = tab.main().getByRole('list', { name: 'Problems' });
    await problem.waitFor();
    expect(await problem.innerText()).toMatch(/broken\.yaml:1\s/);
    await demo().remove('broken.yaml');
    await problem.waitFor({ state: 'detached' });
  });

  test('doctor runs on request; what is fine is folded', async () => {
    const tab = await open('/node');
    const doctor = tab.main().getByRole('region', { name: 'Doctor' });
    await doctor.getByText(/^node1, nftables mode: /).waitFor();
    const asked = (): number => tab.asked.filter((path) => path === '/v1/doctor').length;
    expect(asked()).toBe(1);
    await doctor.getByRole('button', { name: 'Run again' }).click();
    await expect.poll(asked).toBe(2);
    await tab.isShown();
    const fine = doctor.getByRole('list', { name: 'Without findings' }).locator('details').first();
    expect(await fine.getAttribute('open')).toBeNull();
    await fine.locator('summary').click();
    await fine.getByRole('listitem').first().waitFor();
  });
});
