/** Everything that comes from objects is text, whatever it says. */
import { describe, expect, test } from 'vitest';
import { ask } from '../../e2e/support/ask.ts';
import { useInLab } from '../../e2e/support/use.ts';
import { useLab } from '../../lab/requireLab.ts';
import { Demo } from './support/demo.ts';
import { overflowAt } from './support/overflow.ts';
import type { Tab } from './support/tab.ts';
import { useBrowser } from './support/use.ts';

const IMAGE = '<img src=x onerror=owned=1>';
const LONG = 'a'.repeat(253);

/** The proxy refuses such names, and quotes them where it says so. */
const REFUSED = `apiVersion: v1
kind: Service
metadata: {name: ${JSON.stringify(IMAGE)}, namespace: shop}
spec: {clusterIP: 10.96.7.1, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata:
  name: evil
  namespace: shop
  annotations: {service.kubernetes.io/topology-mode: ${JSON.stringify(IMAGE)}}
spec: {clusterIP: 10.96.7.2, ports: [{name: ${JSON.stringify(IMAGE)}, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-9, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8081}]
endpoints:
- addresses: [10.244.2.12]
  nodeName: ${JSON.stringify(IMAGE)}
  zone: ${JSON.stringify(IMAGE)}
  targetRef: {kind: Pod, namespace: shop, name: ${JSON.stringify(IMAGE)}}
  conditions: {ready: true}
  hints: {forZones: [{name: ${JSON.stringify(IMAGE)}}]}
`;

/**
 * What a proxy that checks nothing would say: names in its answers replaced. A name from right to left, with control
 * characters, very long, and with a way out of attributes, scripts and templates.
 */
const NAMES: Readonly<Record<string, string>> = {
  'pod-a': IMAGE,
  'pod-c': `\u202e\u0007\u0000${'x'.repeat(10)}`,
  'zone-a': '"><script>owned=1</script>',
  'zone-b': "javascript:owned=1//${owned=1}{{owned=1}}'",
  node2: LONG,
  http: '<svg/onload=owned=1>',
  'in --cluster-cidr': '<b onclick=owned=1>in</b> --cluster-cidr',
};

function replaced(text: string): string {
  return Object.entries(NAMES).reduce(
    (whole, [name, hostile]) => whole.replaceAll(name, JSON.stringify(hostile).slice(1, -1)),
    text,
  );
}

const VIEWS = [
  '/services',
  '/services/shop/web',
  '/services/shop/api',
  '/packet?from=outside&to=svc/shop/web',
  '/syncs',
  '/node',
];

/** No script ran, and no element is there that the page did not make. */
async function expectText(tab: Tab): Promise<void> {
  expect(
    await tab.evaluate(
      "typeof window.owned + document.querySelectorAll('img[src=x], script:not([src]), main b[onclick], svg[onload]').length",
    ),
  ).toBe('undefined0');
}

describe('the page of a running proxy', () => {
  const lab = useLab();
  const demo = useInLab(() => Demo.start(lab()));
  const open = useBrowser(demo);

  test('what the proxy refuses is quoted', async () => {
    await demo().write('hostile.yaml', REFUSED);
    await expect.poll(() => demo().command('explain', 'shop/evil')).toContain(IMAGE);
    const node = await open('/node');
    await node.says(IMAGE);
    await expectText(node);
    const service = await open('/services/shop/evil');
    await service.says(IMAGE);
    await expectText(service);
    await demo().remove('hostile.yaml');
  });

  test.each(VIEWS)('%s with hostile names', async (path) => {
    const tab = await open('about:blank');
    await tab.page.route(
      ({ pathname }) => pathname.startsWith('/v1/') && pathname !== '/v1/watch',
      async (route) => {
        const { pathname, search } = new URL(route.request().url());
        const { status, text } = await ask(demo().socket, pathname + search);
        await route.fulfill({ status, body: replaced(text), contentType: 'application/json' });
      },
    );
    await tab.goTo(path);
    await expectText(tab);
    for (const width of [1000, 360]) expect([width, await overflowAt(tab, width)]).toEqual([width, '']);
  });

  test('an address with anything in it finds nothing, and says so', async () => {
    const tab = await open(`/services/shop/${encodeURIComponent(IMAGE)}`, { expected: /status of 40[04]/ });
    await tab.page.getByRole('heading', { level: 1 }).getByText(IMAGE).waitFor();
    await expectText(tab);
    await tab.goTo(
      `/packet?from=${encodeURIComponent(IMAGE)}&to=${encodeURIComponent('"><script>owned=1</script>')}`,
    );
    await expectText(tab);
    await tab.goTo(`/services?search=${encodeURIComponent(IMAGE)}`);
    await expectText(tab);
  });
});
