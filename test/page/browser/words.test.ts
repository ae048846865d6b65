/** The page says what the commands say, to the letter. */
import { describe, expect, test } from 'vitest';
import { useInLab } from '../../e2e/support/use.ts';
import { useLab } from '../../lab/requireLab.ts';
import { Demo } from './support/demo.ts';
import type { Tab } from './support/tab.ts';
import { useBrowser } from './support/use.ts';

const PACKETS = [
  ['outside', 'svc/shop/web'],
  ['198.18.0.10', '203.0.113.10:80'],
  ['pod/shop/pod-a', 'svc/shop/cart'],
  ['outside', 'svc/shop/idle'],
  ['node', '10.96.99.99:80'],
] as const;

const SERVICES = ['shop/web', 'shop/idle', 'shop/shopfront', 'shop/cart'];

/** Capitals and the place of line breaks are a matter of style. */
const plain = (text: string): string => text.replace(/\s+/g, ' ').toLowerCase();

/** Ages and durations pass: `24 s ago` is `25 s ago` a second later. */
const timeless = (text: string): string =>
  plain(text).replace(/\d[\d.,]*(?: ?(?:ms|µs|s|min|h|d)\b)?(?: \d+ (?:s|min|h)\b)?/g, '#');

/** What columns and indents separate. Signs are images on the page. */
function phrases(text: string): readonly string[] {
  return text
    .split('\n')
    .flatMap((line) => line.trim().split(/\s{2,}/))
    .map((phrase) => phrase.replace(/^[✗!i→] /, ''))
    .filter((phrase) => phrase !== '');
}

async function expectPhrases(tab: Tab, wanted: readonly string[], form = plain): Promise<void> {
  const missing = async (): Promise<readonly string[]> => {
    const shown = form(await tab.text());
    return wanted.filter((phrase) => !shown.includes(form(phrase)));
  };
  await expect.poll(missing).toEqual([]);
}

/** `nat prerouting: services → any: dnat … [any-2 { … }] (3 packets)`: chains, then the rule and its element. */
function ruleTexts(line: string): readonly string[] {
  const rule = line.trim().replace(/^[^:]+: (?:[\w-]+ → )*[\w-]+: /, '');
  const [, text = '', element] = /^(.*?)(?: \[(.*)\])?(?: \([\d,]+ packets?\))?$/.exec(rule) ?? [];
  return [text, ...(element === undefined ? [] : [element])];
}

describe('the page of a running proxy', () => {
  const lab = useLab();
  const demo = useInLab(() => Demo.start(lab()));
  const open = useBrowser(demo);

  test.each(PACKETS)('explain --from %s --to %s', async (from, to) => {
    const printed = await demo().command('explain', '--from', from, '--to', to);
    const lines = printed.split('\n');
    const kernel = lines.findIndex((line) => line.startsWith('  in the kernel'));
    const rules = lines.slice(kernel + 1).filter((line) => /^ {6,}.*: /.test(line) && kernel >= 0);
    const others = lines.filter((line, index) => index < kernel || kernel < 0 || /^ {2}\S/.test(line));
    const said = phrases(others.join('\n')).filter((phrase) => !/^in the kernel|for example$/.test(phrase));
    expect(said.length).toBeGreaterThan(3);
    const tab = await open(`/packet?from=${from}&to=${to}`);
    await expectPhrases(tab, [...said, ...rules.flatMap(ruleTexts)]);
    if (kernel >= 0) await expectPhrases(tab, [lines[kernel] ?? ''], timeless);
  });

  test.each(SERVICES)('explain %s', async (service) => {
    const printed = await demo().command('explain', service);
    // Two columns: of which sources, and what happens to them.
    const verdicts = printed
      .split('\n')
      .filter((line) => /^ {4}(?:pod|node|outside)\b/.test(line))
      .map((line) => line.trim().split(/\s{2,}/)[1] ?? '');
    expect(verdicts.length).toBeGreaterThan(0);
    const frontends = printed
      .split('\n')
      .filter((line) => /^ {2}(?:cluster IP|load-balancer IP|external IP|node port) /.test(line))
      .flatMap((line) => line.trim().split(/\s{2,}/));
    const findings = printed
      .split('\n')
      .filter((line) => /^ {2}[✗!i] |^ {4}(?:cure|consequence) /.test(line))
      .flatMap((line) => phrases(line));
    const tab = await open(`/services/${service}`);
    await expectPhrases(tab, findings);
    await tab.page.getByRole('button', { name: 'As text' }).click();
    await expectPhrases(tab, [...frontends, ...verdicts]);
  });

  test('services', async () => {
    const [head = '', ...rows] = (await demo().command('services')).trimEnd().split('\n');
    const columns = ['SERVICE', 'TYPE', 'CLUSTER IP', 'PORTS', 'STATE'].map((name) => head.indexOf(name));
    const tab = await open('/services', { width: 2560 });
    for (const row of rows) {
      const cells = columns.map((start) => row.slice(start).split(/\s{2,}/)[0] ?? '');
      const [name = ''] = cells;
      const shown = plain(
        await tab
          .main()
          .getByRole('row')
          .filter({ hasText: name.split('/')[1] ?? '' })
          .innerText(),
      );
      for (const cell of cells)
        for (const word of cell.split(/,|: /)) expect(shown.replaceAll('/ ', '/')).toContain(plain(word));
    }
  });

  test('status', async () => {
    const [, ...lines] = (await demo().command('status')).split('\n');
    // The longest name of a line has no column behind it.
    const wanted = phrases(lines.join('\n').replaceAll('kernel read ', 'kernel read  '));
    expect(wanted.length).toBeGreaterThan(10);
    await expectPhrases(await open('/node'), wanted, timeless);
  });
});
