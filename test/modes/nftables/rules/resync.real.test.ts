/** What the program nft can do to our table: a full sync mends it, and knows when there is nothing to mend. */
import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundle } from '../../../system/support/bundle.ts';
import { output } from '../../../system/support/inside.ts';
import { openNamespace, requireNamespaces } from '../../../system/support/namespace.ts';
import { requireNft } from './requireNft.ts';
import { inOneOrder } from './listings.ts';

const SYNC = `
  import { directChannel } from './src/netlink/channel.ts';
  import { NETLINK_NETFILTER, NetlinkSocket } from './src/netlink/socket.ts';
  import { NetlinkNftClient } from './src/modes/nftables/client.ts';
  import { harnessOf, PRINT_CASES } from './test/modes/nftables/rules/printCases.ts';
  const given = PRINT_CASES.find(({ name, family }) => name === 'large pools' && family === 'IPv4');
  const client = new NetlinkNftClient('IPv4', directChannel(NetlinkSocket.open(NETLINK_NETFILTER)));
  const { refused, commits } = await harnessOf(given, { client }).sync();
  console.log(JSON.stringify({ refused: refused.size, commits }));`;

let script = '';
beforeAll(async () => {
  script = await bundle('nftAdoption', SYNC);
});
afterAll(() => rm(script));

const DEEDS: readonly (readonly [string, string])[] = [
  ['a rule with a set of its own in our chain', 'add rule ip junction services tcp dport { 80, 443 } drop'],
  [
    'a chain of theirs with such a rule',
    'add chain ip junction theirs; add rule ip junction theirs ip daddr { 10.0.0.1, 10.0.0.2 } drop',
  ],
  [
    'a base chain of theirs that jumps to ours',
    'add chain ip junction theirs { type nat hook prerouting priority -101; }; add rule ip junction theirs jump services',
  ],
  [
    'a map of theirs that leads to our chain',
    'add map ip junction theirs { type inet_service : verdict; }; add element ip junction theirs { 80 : jump services }',
  ],
  ['a policy', 'chain ip junction prerouting { policy drop; }'],
  ['no rules at all', 'flush table ip junction'],
  [
    'no elements',
    'flush map ip junction any-16; flush set ip junction allowed; flush set ip junction service-ips',
  ],
  ['an element of theirs', 'add element ip junction service-ips { 8.8.8.8 }'],
  ['no table', 'delete table ip junction'],
];

test.for(DEEDS)('%s', async ([, deed], context) => {
  requireNamespaces(context);
  requireNft(context);
  const namespace = await openNamespace();
  try {
    const sync = async (): Promise<unknown> => JSON.parse(await output(namespace, process.execPath, script));
    const list = async () => inOneOrder(await output(namespace, 'nft', 'list', 'table', 'ip', 'junction'));
    await sync();
    const before = await list();
    for (const command of deed.split(/;(?![^{]*\})/)) await output(namespace, 'nft', command.trim());
    expect(await sync()).toMatchObject({ refused: 0 });
    expect([...(await list())].sort()).toEqual([...before].sort());
    expect(await sync()).toEqual({ refused: 0, commits: 0 });
  } finally {
    await namespace.close();
  }
});
