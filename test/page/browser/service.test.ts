/** The view of a service in a real browser: its diagram, by pointer and by keyboard, with two endpoints and with 300. */
import { describe, expect, test } from 'vitest';
import { useInLab } from '../../e2e/support/use.ts';
import { useLab } from '../../lab/requireLab.ts';
import { Demo } from './support/demo.ts';
import type { Tab } from './support/tab.ts';
import { useBrowser } from './support/use.ts';

const PATH = 'section[aria-labelledby=path-title]';

function box(tab: Tab, key: string) {
  return tab.page.locator(`[data-box="${key}"]`);
}

/** Sentences of the caption, one for each line. */
async function caption(tab: Tab): Promise<readonly string[]> {
  const texts = await tab.page.locator('.caption dd').allInnerTexts();
  return texts.map((text) => text.replace(/\s*packet$/, ''));
}

function many(zones: number, nodes: number, perNode: number): string {
  const slices = Array.from({ length: zones }, (_, zone) => {
    const endpoints = Array.from({ length: nodes * perNode }, (__, index) => {
      const node = Math.floor(index / perNode);
      return `  - { addresses: [10.${100 + zone}.${node}.${10 + (index % perNode)}], nodeName: worker-${zone}-${node}, zone: zone-${zone}, conditions: { ready: true } }`;
    });
    return `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: many-${zone}, namespace: shop, labels: { kubernetes.io/service-name: many } }
addressType: IPv4
ports: [{ name: http, port: 8080, protocol: TCP }]
endpoints:
${endpoints.join('\n')}
`;
  });
  const service = `apiVersion: v1
kind: Service
metadata: { name: many, namespace: shop }
spec: { clusterIP: 10.96.7.7, ports: [{ name: http, port: 80 }] }
`;
  return [service, ...slices].join('---\n');
}

describe('a service', () => {
  const lab = useLab();
  const demo = useInLab(() => Demo.start(lab()));
  const open = useBrowser(demo);

  test('whatever is pointed at has its way highlighted, and the sentences of explain below', async () => {
    const printed = (await demo().command('explain', 'shop/web')).replaceAll(/ +/g, ' ');
    const tab = await open('/services/shop/web');
    for (const key of ['source pod 0', 'source outside 0', 'frontend load-balancer IP 203.0.113.10:80']) {
      await box(tab, key).hover();
      await expect.poll(() => tab.page.locator('.strand.is-lit').count()).toBeGreaterThan(2);
      const sentences = await caption(tab);
      expect(sentences.length).toBeGreaterThan(2);
      expect(sentences.filter((sentence) => !printed.includes(sentence))).toEqual([]);
    }
    expect(await tab.page.locator('.caption-title').innerText()).toContain('externalTrafficPolicy: Local');
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
    expect(seen).not.toContain(null);
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen[0]).toBe('source pod 0');
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

  test('the field that decides is marked, with its line', async () => {
    const tab = await open('/services/shop/web');
    await tab.says('spec.loadBalancerSourceRanges');
    await box(tab, 'end dropped: not in loadBalancerSourceRanges').hover();
    const marked = tab.page.locator('.is-deciding');
    await expect
      .poll(() => marked.allInnerTexts())
      .toEqual([expect.stringMatching(/SourceRanges.*web\.yaml:\d+/s)]);
  });

  test('a change marks what it changed, is in the history, and leads to what was before', async () => {
    const tab = await open('/services/shop/catalog');
    await box(tab, 'pool cluster').waitFor();
    await demo().edit('ipv6.yaml', (text) =>
      text.replace('conditions: { ready: true }', 'conditions: { ready: false }'),
    );
    await tab.page.locator('.box-pool .box-changed').waitFor();
    await tab.page.locator('.box.is-left-out').filter({ hasText: 'not ready' }).waitFor();
    await tab.page.getByRole('link', { name: 'before' }).first().click();
    await tab.says(/As it was/);
    await expect.poll(() => tab.text(PATH)).toContain('2 endpoints');
    await tab.page.getByRole('link', { name: 'Show it as it is now' }).click();
    await expect.poll(() => tab.text(PATH)).toContain('1 endpoint');
  });

  test('300 endpoints are three zones; one opens into nodes, and a node into endpoints', async () => {
    await demo().write('many.yaml', many(3, 20, 5));
    await expect.poll(() => demo().command('services')).toContain('shop/many');
    const tab = await open('/services/shop/many');
    const groups = tab.page.locator('.box-group');
    await expect.poll(() => groups.allInnerTexts()).toHaveLength(3);
    expect((await groups.first().innerText()).replaceAll(/\s+/g, ' ')).toBe(
      'zone-0 100 endpoints, all ready 33 %',
    );
    await box(tab, 'zone zone-1').focus();
    await tab.page.keyboard.press('Enter');
    await expect.poll(() => groups.count()).toBe(23);
    await box(tab, 'zone zone-1/node worker-1-3').press('Enter');
    await expect.poll(() => tab.page.locator('.box-endpoint').count()).toBe(5);
    await box(tab, 'zone zone-1').press('Enter');
    await expect.poll(() => groups.count()).toBe(3);
    const overlap = await tab.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
    expect(overlap).toBeLessThanOrEqual(0);
  });

  test('ports and families by address', async () => {
    const tab = await open('/services/shop/catalog?port=http&family=IPv6');
    await tab.page.locator('.box-frontend').filter({ hasText: '[fd00:96::60]:80' }).waitFor();
    await tab.page.getByRole('navigation', { name: 'Ports' }).getByRole('link', { name: /IPv4/ }).click();
    await tab.page.locator('.box-frontend').filter({ hasText: '10.96.0.60:80' }).waitFor();
    expect(tab.address).toBe('/services/shop/catalog?port=http%2FTCP&family=IPv4');
    await tab.page.goBack();
    await tab.page.locator('.box-frontend').filter({ hasText: '[fd00:96::60]:80' }).waitFor();
  });

  test('a service that is not there: what is near it', async () => {
    const tab = await open('/services/shop/wbe', { expected: /400|404/ });
    await tab.says(/there is no Service/i);
    await tab.page.getByRole('link', { name: 'shop/web' }).click();
    await box(tab, 'source pod 0').waitFor();
    expect(tab.address).toBe('/services/shop/web');
  });

  test('in a narrow window the same stands as text', async () => {
    const tab = await open('/services/shop/web', { width: 360 });
    await tab.says('dropped: not in loadBalancerSourceRanges');
    expect(await tab.page.locator('[data-box]').count()).toBe(0);
    expect(await tab.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
  });
});
