/** Every view: for everybody, by mouse and by keyboard, and in the words of the commands. */
import { expect, test } from 'vitest';
import { named } from '../../e2e/support/nftTable.ts';
import { eventText } from '../../../src/explain/events.ts';
import type { WatchEvent } from '../../../src/explain/types.ts';
import { violations } from './support/axe.ts';
import { walkByTab } from './support/keyboard.ts';
import { overflowAt } from './support/overflow.ts';
import type { Tab } from './support/tab.ts';
import type { Stage } from './support/use.ts';

const STATES = [
  ['/services', 'Services', 'shop/web'],
  ['/services?row=shop/web', 'Services', '10.96.0.20'],
  ['/services?search=no-service-has-this-name', 'Services', 'None of 7 services.'],
  ['/services/shop/web', 'shop/web', '203.0.113.10:80'],
  ['/services/shop/idle', 'shop/idle', 'no endpoints'],
  ['/services/shop/no-such-service', 'shop/no-such-service', 'There is no Service'],
  ['/packet', 'Packet', 'From'],
  ['/packet?from=outside&to=svc/shop/web', 'Packet', 'the cluster IP of shop/web:http forwards to'],
  ['/syncs', 'Syncs', 'full'],
  ['/node', 'Node', 'conntrack'],
  ['/no/such/view', 'Not found', 'All services'],
] as const;

/** Something is animated, or would be. */
const MOVING = `document.getAnimations().filter(({ playState }) => playState === 'running').length
  + [...document.querySelectorAll('*')].filter((e) => parseFloat(getComputedStyle(e).transitionDuration) > 0.01).length`;

const ROWS = '.services-body [role=row]';

/** Names of the rows, without the namespace. */
async function shown(tab: Tab): Promise<readonly string[]> {
  const names = await tab.page.locator(`${ROWS} [role=rowheader]`).allInnerTexts();
  return names.map((name) => name.replace(/^shop\//, ''));
}

const eventLines = (tab: Tab): Promise<readonly string[]> => tab.page.locator('.event-text').allInnerTexts();

export function views({ demo, open }: Stage): void {
  test('each is for everybody: by keyboard, in light and dark, at any width', async () => {
    // A service that is not there is answered with 404, which Chromium notes.
    const tab = await open('', { expected: /status of 40[04]/ });
    for (const [path, title, words] of STATES) {
      await tab.page.emulateMedia({ colorScheme: 'light' });
      await tab.page.setViewportSize({ width: 1280, height: 800 });
      await tab.goTo(path);
      await tab.says(words);
      expect([await tab.page.title(), tab.address]).toEqual([`${title} – Junction`, path]);
      expect([path, await tab.page.getByRole('heading', { level: 1 }).count()]).toEqual([path, 1]);
      expect([path, await violations(tab)]).toEqual([path, []]);
      expect([path, await tab.evaluate<number>(MOVING)]).toEqual([path, 0]);
      const { missed, unseen, reached } = await walkByTab(tab);
      expect({ path, missed, unseen }).toEqual({ path, missed: [], unseen: [] });
      expect(reached).toBeGreaterThan(5);
      await tab.page.emulateMedia({ colorScheme: 'dark' });
      expect([path, await violations(tab, ['color-contrast'])]).toEqual([path, []]);
      for (const width of [360, 2560])
        expect([path, width, await overflowAt(tab, width)]).toEqual([path, width, '']);
    }
  });

  test('a link leads to each view, and back; the header says which node it is', async () => {
    const tab = await open('/');
    for (const view of ['Packet', 'Syncs', 'Node', 'Services']) {
      await tab.page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: view }).click();
      await expect.poll(() => tab.address).toBe(`/${view.toLowerCase()}`);
      await tab.isShown();
    }
    await expect.poll(() => tab.text('header')).toContain('node1 nftables');
    await tab.page.goBack();
    await tab.page.getByRole('heading', { level: 1, name: 'Node' }).waitFor();
    await tab.page.goForward();
    await tab.says('shop/web');
  });

  test('services are those of the command, in its words', async () => {
    const tab = await open('/services', { width: 2000 });
    const [, ...lines] = (await demo().command('services', '--output', 'wide')).trimEnd().split('\n');
    expect(await shown(tab)).toEqual(lines.map((line) => line.split(/\s+/)[0]?.replace('shop/', '')));
    for (const line of lines) {
      const [service = '', type = '', addresses = ''] = line.trim().split(/\s{2,}/);
      const row = tab.page
        .locator(ROWS)
        .filter({ has: tab.page.getByRole('link', { name: service, exact: true }) });
      const text = (await row.innerText()).replaceAll(/\s+/g, ' ');
      const state = /\b(?:ok|no endpoints.*|refused.*|not served.*|partly served.*)$/.exec(line)?.[0] ?? '?';
      expect(text).toContain(type);
      expect(text).toContain(addresses.replaceAll(',', ', '));
      expect(text.endsWith(state.replace(': ', ' '))).toBe(true);
    }
  });

  test('services are found, filtered and sorted; the back button takes each step back', async () => {
    const tab = await open('/services');
    const search = tab.page.getByRole('searchbox');
    await search.fill('203.0.113');
    expect(await shown(tab)).toEqual(['web']);
    await expect.poll(() => tab.address).toBe('/services?search=203.0.113');
    // By an endpoint, which the table does not have.
    await search.fill('10.244.2.12');
    await expect.poll(() => shown(tab)).toContain('idle');
    await search.fill('shop');
    await tab.page.getByRole('button', { name: /^no endpoints/ }).click();
    expect(await shown(tab)).toEqual(['idle']);
    await expect.poll(() => tab.address).toBe('/services?search=shop&state=no+endpoints');
    await tab.page.goBack();
    await expect.poll(() => shown(tab)).toContain('web');
    await tab.page.getByRole('combobox', { name: 'Type' }).selectOption('NodePort');
    expect(await shown(tab)).toEqual(['catalog', 'shopfront']);
    await tab.page.getByRole('button', { name: 'Service', exact: true }).click();
    expect(await shown(tab)).toEqual(['shopfront', 'catalog']);
    expect(tab.address).toBe('/services?search=shop&type=NodePort&sort=-service');
    await tab.page.goBack();
    await expect.poll(() => shown(tab)).toEqual(['catalog', 'shopfront']);
    expect((await shown(await open('/services?first=problems')))[0]).toBe('idle');
  });

  test('the search by its key, a row by the arrows', async () => {
    const tab = await open('/node');
    const { keyboard } = tab.page;
    await keyboard.press('Tab');
    await keyboard.press('Enter');
    expect(await tab.evaluate<string>('document.activeElement.id')).toBe('main');
    await keyboard.press('/');
    await expect.poll(() => tab.address).toBe('/services');
    await expect.poll(() => tab.evaluate('document.activeElement.type')).toBe('search');
    await keyboard.type('shop/');
    await keyboard.press('ArrowDown');
    await keyboard.press('End');
    await keyboard.press('ArrowUp');
    const selected = tab.page.locator(`${ROWS}[aria-selected=true]`);
    expect(await selected.getByRole('rowheader').innerText()).toBe('shop/shopfront');
    const grid = tab.page.getByRole('grid');
    expect(await grid.getAttribute('aria-activedescendant')).toBe(await selected.getAttribute('id'));
    await keyboard.press('Enter');
    await tab.page.getByRole('heading', { level: 1, name: 'shop/shopfront' }).waitFor();
    await tab.page.goBack();
    await selected.waitFor();
  });

  test('events are lines in the words of watch, by kind and by service', async () => {
    const tab = await open('/syncs', { width: 2560 });
    await demo().setReady('idle.yaml', true);
    await tab.says('EndpointSlice shop/idle-1: endpoint 10.244.2.12 ready →');
    await tab.page.getByRole('button', { name: 'Pause' }).click();
    const paused = await eventLines(tab);
    await demo().setReady('idle.yaml', false);
    const resume = tab.page.getByRole('button', { name: /^Resume \d+ new events?$/ });
    await resume.waitFor();
    expect(await eventLines(tab)).toEqual(paused);
    await resume.click();
    await tab.says('EndpointSlice shop/idle-1: endpoint 10.244.2.12 not ready →');
    const events = await tab.evaluate<readonly WatchEvent[]>("fetch('/v1/events').then((r) => r.json())");
    expect(events.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['sync', 'change']));
    await expect.poll(() => eventLines(tab)).toEqual(events.map(eventText).toReversed());

    await tab.page.getByRole('button', { name: /^change / }).click();
    await expect.poll(async () => (await eventLines(tab)).every((line) => line.includes('→'))).toBe(true);
    await tab.page.getByRole('searchbox').fill('shop/nobody');
    await tab.says('No event is like that');
    await tab.page.getByRole('searchbox').fill('shop/i*');
    await tab.page.getByRole('radio', { name: '30 min' }).check({ force: true });
    await expect.poll(() => tab.address).toBe('/syncs?minutes=30&kind=change&service=shop%2Fi*');
    const again = await open(tab.address);
    await again.says('endpoint 10.244.2.12 not ready →');
    await again.main().getByRole('link', { name: 'shop/idle' }).first().click();
    await expect.poll(() => again.address).toBe('/services/shop/idle');
  });

  test('syncs by the keyboard, latencies by the pointer, and the change of another program', async () => {
    const tab = await open('/syncs?minutes=30');
    const slider = tab.page.getByRole('slider');
    await slider.focus();
    await tab.page.keyboard.press('Home');
    await expect
      .poll(() => slider.getAttribute('aria-valuetext'))
      .toMatch(/^IPv4: .*planned in .*written in/);
    await expect.poll(async () => (await eventLines(tab)).at(-1)).toMatch(/^full, .* start$/);
    await tab.page.keyboard.press('Escape');
    await expect.poll(() => tab.address).toBe('/syncs?minutes=30');

    const bucket = tab
      .main()
      .getByRole('button', { name: /: [1-9]\d* changes?/ })
      .first();
    const count = Number(/: (\d+) change/.exec((await bucket.textContent()) ?? '')?.[1]);
    await bucket.click();
    await expect.poll(async () => (await eventLines(tab)).length).toBe(count);
    await tab.goTo('/syncs?minutes=1');
    const node = demo().lab.host('node1');
    await node.run(['nft', await named(node, 'delete table ip junction')]);
    await tab.says(/^nft \(pid \d+\) changed .*; repaired in/);
    await expect.poll(() => tab.page.locator('svg .sync-mark-repaired').count()).toBeGreaterThan(1);
  });

  test('the node is as status has it; a broken manifest is named until it is gone; doctor runs on request', async () => {
    const tab = await open('/node');
    const [, ...lines] = (await demo().command('status')).split('\n');
    const wanted = lines.flatMap((line) => line.trim().split(/\s{2,}/)).filter((phrase) => phrase !== '');
    expect(wanted.length).toBeGreaterThan(10);
    await expect
      .poll(async () => {
        const text = timeless(await tab.text());
        return wanted.filter((phrase) => !text.includes(timeless(phrase)));
      })
      .toEqual([]);

    await demo().write(
      'broken.yaml',
      'apiVersion: v1\nkind: Service\nmetadata: {name: Bad_, namespace: shop}\n',
    );
    const problem = tab.main().getByRole('list', { name: 'Problems' });
    await problem.waitFor();
    expect(await problem.innerText()).toMatch(/broken\.yaml:1\b/);
    await demo().remove('broken.yaml');
    await problem.waitFor({ state: 'detached' });

    const doctor = tab.main().getByRole('region', { name: 'Doctor' });
    await doctor.getByText(/^node1, nftables mode: /).waitFor();
    const asked = (): number => tab.asked.filter((path) => path === '/v1/doctor').length;
    expect(asked()).toBe(1);
    await doctor.getByRole('button', { name: 'Run again' }).click();
    await expect.poll(asked).toBe(2);
    await tab.isShown();
  });
}

/** Ages and durations pass; signs are images on the page, and capitals a matter of style. */
function timeless(text: string): string {
  return text
    .replace(/^[✗!i→] /, '')
    .toLowerCase()
    .replace(/\d[\d.,]*(?: ?(?:ms|µs|s|min|h|d)\b)?(?: \d+ (?:s|min|h)\b)?/g, '#');
}
