/** The page of a whole proxy, in a real Chromium in the network namespace of this process. */
import { readdirSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { startChromium } from '../../test/page/browser/support/chromium.ts';
import { withAskedProxy } from '../questions/askedProxy.ts';
import type { UiRun, UiTask } from './messages.ts';
import { measureTable } from './table.ts';
import { Tabs, timeViews, whatViewsAsk } from './tabs.ts';

const ADDRESS = '127.0.0.1:10260';
const ORIGIN = `http://${ADDRESS}`;
const PAGE = fileURLToPath(new URL('page/', import.meta.url));

function compressedSize(): number {
  return readdirSync(PAGE)
    .filter((name) => name.endsWith('.br'))
    .reduce((sum, name) => sum + statSync(PAGE + name).size, 0);
}

async function main(task: UiTask): Promise<UiRun> {
  return withAskedProxy(task.sizes, [`--ui-bind-address=${ADDRESS}`], async (asked, proxy) => {
    const chromium = await startChromium();
    let table: UiRun['table'];
    let asking: Awaited<ReturnType<typeof whatViewsAsk>>;
    try {
      table = await measureTable(chromium, ORIGIN, task.repetitions);
      asking = await whatViewsAsk(chromium, ORIGIN, asked);
    } finally {
      // It would compete with the proxy for the processors.
      await chromium.close();
    }
    const views = await timeViews(asking, ORIGIN, task.repetitions);
    const alone = await asked.changes(task.changes);
    const tabs = await Tabs.open(task.tabs, asking, ORIGIN);
    const withTabs = await asked.changes(task.changes);
    tabs.close();
    return {
      table,
      views,
      syncs: { alone, withTabs },
      asked: tabs.asked,
      files: compressedSize(),
      resident: proxy.resident(),
    };
  });
}

process.stdout.write(`${JSON.stringify(await main(JSON.parse(process.argv[2] ?? '{}') as UiTask))}\n`);
