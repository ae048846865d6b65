/** The view of a service: its diagram, by pointer and by keyboard, with two endpoints and with 300, and the same as text. */
import { expect, test } from 'vitest';
import type { Tab } from './support/tab.ts';
import type { Stage } from './support/use.ts';

const box = (tab: Tab, key: string) => tab.page.locator(`[data-box="${key}"]`);

/** Boxes that lie on each other, by their keys. */
const OVERLAPS = `(() => {
  const boxes = [...document.querySelectorAll('[data-box]')].map((e) => [e.dataset.box, e.getBoundingClientRect()]);
  return boxes.flatMap(([a, p], i) => boxes.slice(i + 1)
    .filter(([, q]) => p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 1 && q.top < p.bottom - 1)
    .map(([b]) => a + ' / ' + b));
})()`;

/** A service with `nodes` × `perNode` endpoints in each zone. */
function many(zones: number, nodes: number, perNode: number): string {
  const [apiVersion, name] = ['discovery.k8s.io/v1', 'many'];
  const slices = Array.from({ length: zones }, (_, zone) => ({
    apiVersion,
    kind: 'EndpointSlice',
    metadata: { name: `many-${zone}`, namespace: 'shop', labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: Array.from({ length: nodes * perNode }, (__, index) => {
      const node = Math.floor(index / perNode);
      const addresses = [`10.${100 + zone}.${node}.${10 + (index % perNode)}`];
      return { addresses, nodeName: `worker-${zone}-${node}`, zone: `zone-${zone}` };
    }),
  }));
  const spec = { clusterIP: '10.96.7.7', ports: [{ name: 'http', port: 80 }] };
  const service = { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: 'shop' }, spec };
  return [service, ...slices].map((object) => JSON.stringify(object)).join('\n---\n');
}

export function service({ demo, open }: Stage): void {
  test('whatever is pointed at has its way highlighted, and the sentences of explain below', async () => {
    const printed = (await demo().command('explain', 'shop/web')).replaceAll(/ +/g, ' ');
    const tab = await open('/services/shop/web');
    for (const key of ['source pod 0', 'source outside 0', 'frontend load-balancer IP 203.0.113.10:80']) {
      await box(tab, key).hover();
      await expect.poll(() => tab.page.locator('.strand.is-lit').count()).toBeGreaterThan(2);
      const texts = await tab.page.locator('.caption dd').allInnerTexts();
      const sentences = texts.map((text) => text.replace(/\s*packet$/, ''));
      expect(sentences.length).toBeGreaterThan(2);
      expect(sentences.filter((sentence) => !printed.includes(sentence))).toEqual([]);
    }
    expect(await tab.page.locator('.caption-title').innerText()).toContain('externalTrafficPolicy: Local');
    expect(await tab.evaluate(OVERLAPS)).toEqual([]);
    // The field that decides is marked, with its line.
    await box(tab, 'end dropped: not in loadBalancerSourceRanges').hover();
    await expect
      .poll(() => tab.page.locator('.is-deciding').allInnerTexts())
      .toEqual([expect.stringMatching(/SourceRanges.*web\.yaml:\d+/s)]);
  });

  test.each(['shop/web', 'shop/idle'])('%s as text is what explain prints', async (name) => {
    const lines = (await demo().command('explain', name)).split('\n');
    const columns = (pattern: RegExp): readonly string[] =>
      lines.filter((line) => pattern.test(line)).flatMap((line) => line.trim().split(/\s{2,}/));
    const frontends = columns(/^ {2}(?:cluster IP|load-balancer IP|external IP|node port) /);
    // Behind the sources stands what happens to their packets.
    const verdicts = columns(/^ {4}(?:pod|node|outside)\b/).filter((_, index) => index % 2 === 1);
    const findings = columns(/^ {2}[✗!i] |^ {4}(?:cure|consequence) /).map((text) =>
      text.replace(/^[✗!i] /, ''),
    );
    expect(Math.min(frontends.length, verdicts.length)).toBeGreaterThan(0);
    const tab = await open(`/services/${name}`);
    await tab.page.getByRole('button', { name: 'As text' }).click();
    await expect
      .poll(async () => {
        const text = (await tab.text()).toLowerCase();
        return [...frontends, ...verdicts, ...findings].filter((each) => !text.includes(each.toLowerCase()));
      })
      .toEqual([]);
  });

  test('by keyboard: every box is on the way of Tab, arrows go along, Enter keeps, Escape lets go', async () => {
    const tab = await open('/services/shop/web');
    const focused = (): Promise<string | null> =>
      tab.evaluate<string | null>('document.activeElement.getAttribute("data-box")');
    await tab.page.getByRole('button', { name: 'As text' }).focus();
    const seen: (string | null)[] = [];
    for (const count = await tab.page.locator('[data-box]').count(); seen.length < count; ) {
      await tab.page.keyboard.press('Tab');
      seen.push(await focused());
    }
    expect([seen.includes(null), new Set(seen).size, seen[0]]).toEqual([false, seen.length, 'source pod 0']);
    await box(tab, 'source outside 0').focus();
    await tab.page.keyboard.press('ArrowRight');
    expect(await focused()).toBe('frontend load-balancer IP 203.0.113.10:80');
    await tab.page.keyboard.press('Enter');
    await tab.page.getByRole('button', { name: 'As text' }).focus();
    await expect.poll(() => tab.text('.caption')).toContain('load-balancer IP 203.0.113.10:80');
    await box(tab, 'source pod 0').focus();
    await tab.page.keyboard.press('Escape');
    await expect.poll(() => tab.text('.caption')).toContain('shop/web:http/TCP, IPv4');
  });

  test('a change marks what it changed, and an endpoint that goes leaves the drawing', async () => {
    const tab = await open('/services/shop/idle');
    await box(tab, 'source pod 0').waitFor();
    await demo().setReady('idle.yaml', true);
    await tab.page.locator('.box-pool .box-changed').first().waitFor();
    await tab.page.locator('.box-endpoint', { hasText: '10.244.2.12' }).first().waitFor();
    await demo().setReady('idle.yaml', false);
    const leftOut = tab.page.locator('.box.is-left-out');
    await expect.poll(() => leftOut.allInnerTexts()).toEqual([expect.stringContaining('not ready')]);
  });

  test('300 endpoints are three zones; one opens into nodes, and a node into endpoints', async () => {
    await demo().write('many.yaml', many(3, 20, 5));
    await expect.poll(() => demo().command('services')).toContain('shop/many');
    const tab = await open('/services/shop/many');
    const groups = tab.page.locator('.box-group');
    await expect.poll(() => groups.count()).toBe(3);
    expect(await groups.first().innerText()).toMatch(/zone-0\s+100 endpoints, all ready\s+33 %/);
    await box(tab, 'zone zone-1').press('Enter');
    await expect.poll(() => groups.count()).toBe(23);
    await box(tab, 'zone zone-1/node worker-1-3').press('Enter');
    await expect.poll(() => tab.page.locator('.box-endpoint').count()).toBe(5);
    expect(await tab.evaluate(OVERLAPS)).toEqual([]);
    await box(tab, 'zone zone-1').press('Enter');
    await expect.poll(() => groups.count()).toBe(3);
    await demo().remove('many.yaml');
  });

  test('ports and families by address', async () => {
    const tab = await open('/services/shop/catalog?port=http&family=IPv6');
    const frontend = (text: string) => tab.page.locator('.box-frontend').filter({ hasText: text });
    await frontend('[fd00:96::60]:80').waitFor();
    await tab.page.getByRole('navigation', { name: 'Ports' }).getByRole('link', { name: /IPv4/ }).click();
    await frontend('10.96.0.60:80').waitFor();
    expect(tab.address).toBe('/services/shop/catalog?port=http%2FTCP&family=IPv4');
    await tab.page.goBack();
    await frontend('[fd00:96::60]:80').waitFor();
  });

  test('a service that is not there: what is near it; in a narrow window it is text', async () => {
    const tab = await open('/services/shop/wbe', { expected: /400|404/, width: 360 });
    await tab.says(/there is no Service/i);
    await tab.page.getByRole('link', { name: 'shop/web' }).click();
    await tab.says('dropped: not in loadBalancerSourceRanges');
    expect([tab.address, await tab.page.locator('[data-box]').count()]).toEqual(['/services/shop/web', 0]);
  });
}
