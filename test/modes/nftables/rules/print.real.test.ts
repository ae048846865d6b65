/** The table as text: what is printed is what nft lists of the table in the kernel, and nft can load both. */
import { rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TABLE } from '../../../../src/modes/nftables/rules/names.ts';
import { printTable } from '../../../../src/modes/nftables/print.ts';
import { wholeTable } from '../../../../src/modes/nftables/rules/counts.ts';
import { bundle } from '../../../system/support/bundle.ts';
import { output } from '../../../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../../system/support/namespace.ts';
import { requireNft } from './requireNft.ts';
import { inOneOrder, loadable } from './listings.ts';
import { PRINT_CASES } from './printCases.ts';
import { plannedNft } from './served.ts';

const BUILD = `
  import { directChannel } from './test/netlink/support/directChannel.ts';
  import { NETLINK_NETFILTER, NetlinkSocket } from './src/netlink/socket.ts';
  import { NetlinkNftTables } from './src/modes/nftables/client.ts';
  import { PRINT_CASES } from './test/modes/nftables/rules/printCases.ts';
  import { serveNft } from './test/modes/nftables/rules/served.ts';
  const given = PRINT_CASES[Number(process.argv[2])];
  const tables = new NetlinkNftTables(given.family, directChannel(NetlinkSocket.open(NETLINK_NETFILTER)));
  const { refused } = await serveNft(given, tables);
  console.log(JSON.stringify({ refused: refused.size }));`;

let script = '';
beforeAll(async () => {
  script = await bundle('nftPrint', BUILD);
});
afterAll(() => rm(script));

describe.each(PRINT_CASES.map((given, index) => ({ given, index, name: given.name, family: given.family })))(
  '$name ($family)',
  ({ given, index, family }) => {
    test('is listed as it is printed, and what is listed can be loaded', {
      timeout: 300_000,
    }, async (context) => {
      requireNamespaces(context);
      requireNft(context);
      const namespace = await openNamespace();
      try {
        const built = JSON.parse(await output(namespace, process.execPath, script, String(index)));
        expect(built).toEqual({ refused: 0 });
        const table = ['table', family === 'IPv4' ? 'ip' : 'ip6', TABLE] as const;
        const list = (): Promise<string> => output(namespace, 'nft', 'list', ...table);
        const listing = await list();
        expect(listing).not.toMatch(/invalid|unknown|0x[0-9a-f]{9}/);

        const { plan, settings } = plannedNft(given);
        const printed = printTable(wholeTable(plan, settings), family);
        expect(linesOf(printed, 'ct original proto-dst')).toEqual(linesOf(listing, 'ct original proto-dst'));
        await reload(namespace, table, loadable(printed));
        const loaded = await list();
        expect(inOneOrder(loaded)).toEqual(inOneOrder(loadable(listing)));

        await reload(namespace, table, loadable(listing));
        expect(inOneOrder(await list())).toEqual(inOneOrder(loadable(listing)));
      } finally {
        await namespace.close();
      }
    });
  },
);

function linesOf(text: string, part: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.includes(part));
}

/** The kernel gives out the order of elements by what came before, so that the table comes anew. */
async function reload(
  namespace: Namespace,
  table: readonly [string, string, string],
  text: string,
): Promise<void> {
  const file = join(dirname(namespace.lockPath), 'rules.nft');
  await writeFile(file, text);
  await output(namespace, 'nft', 'delete', ...table);
  await output(namespace, 'nft', '-f', file);
}
