/** The view of a packet: it says what `explain` says, finds what another program did, and is asked by keyboard. */
import { expect, test } from 'vitest';
import type { Demo } from './support/demo.ts';
import type { Tab } from './support/tab.ts';
import type { Stage } from './support/use.ts';

function path(from: string, to: string): string {
  return `/packet?${new URLSearchParams({ from, to }).toString()}`;
}

const verdict = (tab: Tab): Promise<string> => tab.text('.verdict');

/** All that the command prints is on the page. */
export async function expectWordsOfExplain(demo: Demo, tab: Tab, from: string, to: string): Promise<void> {
  await tab.goTo(path(from, to));
  let text = await tab.text();
  const ways = tab.page.getByRole('group', { name: 'Way' }).getByRole('radio');
  for (let index = 0; index < (await ways.count()); index++) {
    await ways.nth(index).check();
    text += ` ${await tab.text()}`;
  }
  const printed = await demo.command('explain', '--from', from, '--to', to, '--output', 'wide');
  const missing = piecesOf(printed).filter((piece) => !text.includes(piece));
  expect({ missing, printed }).toEqual({ missing: [], printed });
}

/** A line of the command in pieces, as they stand apart on the page. */
function piecesOf(printed: string): readonly string[] {
  return printed.split('\n').flatMap((line) => {
    const [, hook, rest = ''] = /^\s{15}((?:\w+ \w+)|ipvs): (.*)$/.exec(line) ?? [];
    if (hook !== undefined) return [hook, ...stepPieces(rest)];
    // Its age is another by now.
    const told = line.replace(/, read .*: /, ' : ');
    return told
      .trim()
      .split(/\s{2,}|(?<=^[✗!→]) | : /)
      .filter((piece) => piece.length > 1);
  });
}

/** `ip junction services: jump x [found] (3 packets, another program's rule)` */
function stepPieces(text: string): readonly string[] {
  const [, before = '', remarks = ''] = /^(.*?)(?: \(([^()]*(?:packets?|rule))\))?$/.exec(text) ?? [];
  const [, place = '', rule = ''] = /^(.*?): (.*)$/.exec(before) ?? [];
  // Counters grow meanwhile.
  const told = remarks.split(', ').map((remark) => remark.replace(/^[\d,]+ packets?$/, 'packet'));
  return [place.split(' ').at(-1) ?? '', rule, ...told.filter((remark) => remark !== '')];
}

export function packet({ demo, open }: Stage): void {
  test('dropped, forwarded, no service there: the words of the command', async () => {
    const tab = await open('');
    await expectWordsOfExplain(demo(), tab, '198.18.0.10', '203.0.113.10:80');
    await expectWordsOfExplain(demo(), tab, 'pod/shop/pod-a', 'svc/shop/cart:80');
    await expectWordsOfExplain(demo(), tab, 'pod/shop/pod-b', '10.96.0.10:81');
  });

  test('a rule of another program is found, and that it is gone', async () => {
    const node = demo().lab.host('node1');
    const nft = (...words: readonly string[]) => node.run(['nft', ...words]);
    const tab = await open(path('pod/shop/pod-b', 'svc/shop/api:80'));
    expect(await verdict(tab)).toBe('FORWARDED');
    await nft('add table inet other-firewall');
    try {
      await nft(
        'add chain inet other-firewall forward { type filter hook forward priority 0; policy accept; }',
      );
      await nft('add rule inet other-firewall forward ip daddr 10.244.2.0/24 counter drop');
      await tab.page.getByRole('button', { name: 'Read again' }).click();
      await tab.says('FORWARDED, BUT NOT AS PLANNED');
      await tab.says("another program's rule");
      await expect
        .poll(() => tab.page.locator('.station-wrong').innerText())
        .toMatch(/forward.*planned: forwarded to.*kernel: .*dropped/s);
    } finally {
      await nft('delete table inet other-firewall');
    }
    await tab.page.getByRole('button', { name: 'Read again' }).click();
    await expect.poll(() => verdict(tab)).toBe('FORWARDED');
  });

  test('the form by the keyboard alone, with what exists to choose from', async () => {
    const tab = await open('/packet');
    const { keyboard } = tab.page;
    const from = tab.page.getByRole('combobox', { name: 'From' });
    await from.focus();
    await keyboard.type('po');
    await tab.page.getByRole('option', { name: 'pod/' }).waitFor();
    await keyboard.press('ArrowDown');
    expect(await from.getAttribute('aria-activedescendant')).toBe(
      await tab.page.getByRole('option', { name: 'pod/' }).getAttribute('id'),
    );
    await keyboard.press('Enter');
    await tab.page.getByRole('option', { name: 'pod/shop/' }).waitFor();
    await keyboard.type('shop/pod-b');
    await keyboard.press('Escape');
    await tab.page.getByRole('combobox', { name: 'To', exact: true }).focus();
    await keyboard.type('shop/ap');
    await tab.page.getByRole('option', { name: 'svc/shop/api' }).waitFor();
    await keyboard.press('ArrowDown');
    await keyboard.press('Enter');
    await keyboard.press('Enter');
    await expect.poll(() => tab.address).toBe(path('pod/shop/pod-b', 'svc/shop/api'));
    await expect.poll(() => verdict(tab)).toBe('FORWARDED');
    await tab.page.goBack();
    const examples = tab.page.getByRole('list', { name: 'Examples' }).getByRole('link');
    await expect.poll(() => examples.count()).toBe(3);
    await examples.first().click();
    await tab.page.locator('.verdict').waitFor();
    expect(await tab.page.getByRole('combobox', { name: 'From' }).inputValue()).toBe('outside');
  });

  test('what is wrong with a field is said there; an answer follows the cluster', async () => {
    const tab = await open(path('node', 'svc/shop/idel'), { expected: /400/ });
    const input = tab.page.getByRole('combobox', { name: 'To', exact: true });
    await expect.poll(() => input.getAttribute('aria-invalid')).toBe('true');
    const described = tab.page.locator(`[id="${await input.getAttribute('aria-describedby')}"]`);
    expect(await described.innerText()).toContain(
      'there is no Service "shop/idel" (did you mean shop/idle?)',
    );
    await input.fill('svc/shop/idle');
    await input.press('Enter');
    await expect.poll(() => verdict(tab)).toBe('REJECTED');
    await demo().setReady('idle.yaml', true);
    await expect.poll(() => verdict(tab)).toBe('FORWARDED');
    await tab.says('10.244.2.12:8080');
    await demo().setReady('idle.yaml', false);
    await expect.poll(() => verdict(tab)).toBe('REJECTED');
  });
}
