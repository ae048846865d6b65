/** Everything that comes from objects is text, other pages in the same browser learn nothing, and others need the token. */
import type { Page } from 'playwright-core';
import { expect, onTestFinished, test } from 'vitest';
import { addressOf } from '../../../lab/topology.ts';
import { eventually } from '../../e2e/support/eventually.ts';
import { tryFetch } from '../../e2e/support/fetch.ts';
import { violations } from './support/axe.ts';
import { overflowAt } from './support/overflow.ts';
import type { Tab } from './support/tab.ts';
import type { Stage } from './support/use.ts';

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

/** Every answer but the stream of events comes as `junction ui` gives it, with these names instead. */
const WITH_NAMES = `{
  const names = Object.entries(${JSON.stringify(NAMES)});
  const ask = window.fetch;
  window.fetch = async (path, options) => {
    const answer = await ask(path, options);
    if (path.startsWith('/v1/watch')) return answer;
    const text = names.reduce((whole, [name, hostile]) => whole.replaceAll(name, JSON.stringify(hostile).slice(1, -1)), await answer.text());
    return new Response(text, { status: answer.status, headers: answer.headers });
  };
}`;

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

/** A site that anybody could have, at a port of its own. */
const SITE = `require('node:http').createServer((_, answer) => {
  answer.writeHead(200, { 'Content-Type': 'text/html' }).end('<title>other</title>');
}).listen(9000, '127.0.0.1')`;

/** Each is a promise of what it has learned of the page at `target`. */
const ATTEMPTS: readonly (readonly [string, string])[] = [
  ['a fetch', `fetch(target + '/v1/status').then((r) => r.text(), () => '')`],
  [
    'a fetch that wants no answer',
    `fetch(target + '/v1/status', { mode: 'no-cors' }).then((r) => r.text(), () => '')`,
  ],
  [
    'a fetch with a header',
    `fetch(target + '/v1/status', { headers: { Authorization: 'Bearer x' } }).then((r) => r.text(), () => '')`,
  ],
  [
    'a stream',
    `new Promise((done) => { const s = new EventSource(target + '/v1/watch?format=events'); s.onopen = () => done('a stream'); s.onerror = () => { s.close(); done(''); }; })`,
  ],
  ...[
    ['script', '/v1/services'],
    ['img', '/icon.svg'],
  ].map(([tag, path]): readonly [string, string] => [
    `an element ${tag}`,
    `new Promise((done) => { const e = document.createElement('${tag}'); e.onload = () => done('loaded'); e.onerror = () => done(''); e.src = target + '${path}'; document.body.append(e); })`,
  ]),
  [
    'a frame',
    `new Promise((done) => { const e = document.createElement('iframe'); e.onload = () => { try { done(e.contentDocument?.title ?? ''); } catch { done(''); } }; e.src = target + '/services'; document.body.append(e); })`,
  ],
  [
    'a form',
    `new Promise((done) => { const f = document.createElement('iframe'); f.name = 'f'; document.body.append(f); const e = document.createElement('form'); e.action = target + '/v1/status'; e.method = 'post'; e.target = 'f'; document.body.append(e); f.onload = () => { try { done(f.contentDocument?.body?.innerText ?? ''); } catch { done(''); } }; e.submit(); })`,
  ],
];

/** Chromium notes the answer to a question without the token, and headers that it takes over TLS alone. */
const WITHOUT_TOKEN = /status of 401|Cross-Origin-Opener-Policy header has been ignored/;

export function hostile({ demo, browser, open }: Stage): void {
  test('what the proxy refuses is quoted', async () => {
    await demo().write('hostile.yaml', REFUSED);
    await expect.poll(() => demo().command('explain', 'shop/evil')).toContain(IMAGE);
    const tab = await open('');
    for (const path of ['/node', '/services/shop/evil']) {
      await tab.goTo(path);
      await tab.says(IMAGE);
      await expectText(tab);
    }
    await demo().remove('hostile.yaml');
  });

  test('every view with hostile names', async () => {
    const tab = await open('');
    await tab.page.addInitScript(WITH_NAMES);
    for (const path of VIEWS) {
      await tab.goTo(path);
      await expectText(tab);
      for (const width of [1000, 360])
        expect([path, width, await overflowAt(tab, width)]).toEqual([path, width, '']);
    }
  });

  test('an address with anything in it finds nothing, and says so', async () => {
    const tab = await open(`/services/shop/${encodeURIComponent(IMAGE)}`, { expected: /status of 40[04]/ });
    await tab.page.getByRole('heading', { level: 1 }).getByText(IMAGE).waitFor();
    await expectText(tab);
    for (const path of ['/packet?to=%22%3E%3Cscript%3Eowned=1%3C/script%3E&from=', '/services?search=']) {
      await tab.goTo(path + encodeURIComponent(IMAGE));
      await expectText(tab);
    }
  });

  async function otherPage(): Promise<Page> {
    const node = demo().lab.host('node1');
    const site = node.spawn([process.execPath, '-e', SITE]);
    const page = await browser().newPage();
    onTestFinished(async () => {
      await page.close();
      site.kill();
    });
    await eventually(
      'the site',
      async () => typeof (await tryFetch(node, 'http://127.0.0.1:9000/')) !== 'string',
    );
    return page;
  }

  test('a page of another site, and of another port of this machine, learns nothing', async () => {
    const page = await otherPage();
    const answers: string[] = [];
    page.on('response', (response) => {
      const url = new URL(response.url());
      if (url.port !== '9000') answers.push(`${response.status()} ${url.pathname}`);
    });
    for (const site of ['http://evil.example:9000', 'http://localhost:9000', 'http://127.0.0.1:9000']) {
      await page.goto(site);
      for (const [name, script] of ATTEMPTS) {
        const learned = await page.evaluate<string>(`((target) => ${script})('${demo().origin}')`);
        expect([site, name, learned]).toEqual([site, name, '']);
      }
    }
    expect(answers.length).toBeGreaterThan(0);
    expect(answers.filter((answer) => !/^40[35] /.test(answer))).toEqual([]);
  });

  test('a page that has given its own name this address is not answered', async () => {
    const page = await otherPage();
    const { port } = new URL(demo().origin);
    expect((await page.goto(`http://evil.example:${port}/services`))?.status()).toBe(421);
    expect(await page.evaluate<number>(`fetch('/v1/services').then((r) => r.status)`)).toBe(421);
  });

  test('another page may open it, and has no hold of the window', async () => {
    const page = await otherPage();
    await page.goto('http://evil.example:9000/');
    const opened = page.context().waitForEvent('page');
    await page.evaluate(`window.held = window.open('${demo().origin}/services'); 0`);
    const window = await opened;
    await window.locator('main h1').first().waitFor();
    expect(await window.title()).toContain('Junction');
    expect(await window.evaluate<boolean>('window.opener === null')).toBe(true);
    expect(await page.evaluate<boolean>('window.held.closed')).toBe(true);
    await window.close();
  });

  test('beyond loopback a token is needed, which is in the link behind the sign that no browser sends', async () => {
    const link = await demo().uiInTerminal(`--api-socket=${demo().socket}`, '--ui-bind-address=0.0.0.0:0');
    const { port, hash } = new URL(link);
    const origin = `http://${addressOf('node1', 'IPv4', 2)}:${port}`;
    const token = hash.replace('#token=', '');
    const tab = await open('/services', { origin, expected: WITHOUT_TOKEN });
    await tab.says('This page needs a token');
    expect(await tab.main().getByText('shop/web').count()).toBe(0);
    expect(await violations(tab)).toEqual([]);
    const enter = async (text: string): Promise<void> => {
      await tab.page.getByLabel('Token').first().fill(text);
      await tab.page.keyboard.press('Enter');
    };
    await enter(`${token}x`);
    await tab.says('This is not the token');
    await enter(token);
    await tab.says('shop/web');
    await tab.page.locator('header .live', { hasText: 'connected' }).waitFor();
    await tab.goTo('/services/shop/web');
    await tab.says('10.96.0.20:80');

    const linked = await open(`/services/shop/web${hash}`, { origin, expected: WITHOUT_TOKEN });
    await linked.says('10.96.0.20:80');
    expect(linked.address).toBe('/services/shop/web');
    expect([...tab.asked, ...linked.asked].filter((path) => path.includes('token'))).toEqual([]);
    expect(await tab.page.context().cookies()).toEqual([]);
  });
}
