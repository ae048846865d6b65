/** The pictures of docs/page.md, of the demo's cluster: `node scripts/screenshots.mjs` makes them. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { named } from '../../e2e/support/nftTable.ts';
import { eventually } from '../../e2e/support/eventually.ts';
import type { Demo } from './support/demo.ts';
import type { Tab } from './support/tab.ts';
import type { Stage } from './support/use.ts';

const IMAGES = fileURLToPath(new URL('../../../docs/images/', import.meta.url));
const MOST_BYTES = 150_000;

interface Shot {
  readonly name: string;
  readonly path: string;
  readonly height: number;
  readonly scheme: 'light' | 'dark';
  /** What has to be there before. */
  readonly ready: (tab: Tab) => Promise<void>;
}

const SHOTS: readonly Shot[] = [
  {
    name: 'service',
    path: '/services/shop/web',
    height: 800,
    scheme: 'light',
    ready: async (tab) => {
      await tab.says('10.244.1.11:8081');
      await tab.main().locator('[data-box^="source pod"]').first().focus();
    },
  },
  {
    name: 'services',
    path: '/services?row=shop%2Fidle',
    height: 620,
    scheme: 'light',
    ready: (tab) => tab.says('no endpoints'),
  },
  {
    name: 'packet',
    path: '/packet?from=198.18.0.10&to=203.0.113.10:80',
    height: 1250,
    scheme: 'light',
    ready: (tab) => tab.says('prerouting'),
  },
  {
    name: 'syncs',
    path: '/syncs',
    height: 860,
    scheme: 'dark',
    ready: async (tab) => {
      await tab.says(/shop\/api/);
      await tab.main().getByText('1 min', { exact: true }).click();
    },
  },
  {
    name: 'node',
    path: '/node',
    height: 1000,
    scheme: 'dark',
    ready: (tab) => tab.page.getByRole('button', { name: 'Run again', disabled: false }).waitFor(),
  },
];

/** Only where the script asks for them. */
export function pictures({ demo, open }: Stage): void {
  if (process.env['JUNCTION_SCREENSHOTS'] !== 'true') return;
  describe('pictures', () => {
    beforeAll(async () => {
      await traffic(demo());
      await changes(demo());
    });

    test.each(SHOTS)('$name', async ({ name, path, height, scheme, ready }) => {
      const tab = await open(path, { width: 1280, height, scheme });
      await tab.page.locator('header .live', { hasText: 'connected' }).waitFor();
      await ready(tab);
      // A third of what the same is as PNG.
      const session = await tab.page.context().newCDPSession(tab.page);
      const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 88 });
      const bytes = Buffer.from(data, 'base64');
      expect(bytes.length).toBeLessThan(MOST_BYTES);
      mkdirSync(IMAGES, { recursive: true });
      writeFileSync(join(IMAGES, `${name}.webp`), bytes);
    });
  });
}

/** Connections that the rules count. */
async function traffic({ lab }: Demo): Promise<void> {
  for (let count = 0; count < 24; count++) {
    await lab.host('pod-b').request('tcp', '10.96.0.20', 80);
    await lab.host('client').request('tcp', '203.0.113.10', 80);
    await lab.host('pod-b').request('tcp', '10.96.0.10', 80);
  }
}

/** Changes of endpoints, and one by another program, which is repaired. */
async function changes(demo: Demo): Promise<void> {
  for (let count = 0; count < 4; count++) {
    const isReady = count % 2 === 1;
    const line = (value: boolean): string => `\n    conditions: { ready: ${value} }`;
    await demo.edit('api.yaml', (text) => text.replace(line(!isReady), line(isReady)));
    await eventually('the change is served', async () => {
      const served = await demo.command('endpoints', 'shop/api');
      return served.includes('not ready') !== isReady;
    });
  }
  const node = demo.lab.host('node1');
  await node.run(['nft', await named(node, 'flush chain ip junction services')]);
}
