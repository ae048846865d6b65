/** Tables that the library makes, beside those that the program nft makes in the same kernel. */
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { requireNft } from '../../modes/nftables/rules/requireNft.ts';
import { inside } from '../../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../system/support/namespace.ts';

const IMPORTS = `
  import { setTimeout as sleep } from 'node:timers/promises';
  import { spawnSync } from 'node:child_process';
  import { directChannel } from './test/netlink/support/directChannel.ts';
  import { NETLINK_NETFILTER, NetlinkSocket } from './src/netlink/socket.ts';
  import { SyncSocket } from './test/netlink/support/syncSocket.ts';
  import { NetlinkSockets } from './src/netlink/sockets.ts';
  import { dumpMessages } from './test/netlink/support/readers.ts';
  import { decodeChain, getChains } from './src/netlink/nftables/objects.ts';
  import { ElementList, readElements } from './src/netlink/nftables/elements.ts';
  import { decodeGeneration, getGeneration } from './src/netlink/nftables/message.ts';
  import { NFNLGRP_NFTABLES, operationOf } from './src/netlink/nftables/message.ts';
    import { decodeRule, getRules } from './src/netlink/nftables/objects.ts';
  import { decodeTable, getTables } from './src/netlink/nftables/objects.ts';
  import { transaction } from './src/netlink/nftables/transaction.ts';
  const print = (value) => console.log(JSON.stringify(value, (_, each) =>
    typeof each === 'bigint' ? Number(each) : each instanceof Uint8Array ? Buffer.from(each).toString('hex') : each));
  const socket = SyncSocket.open(NETLINK_NETFILTER);
  const channel = directChannel(socket.socket, socket.sequence);
  const commit = (operations) => channel.commit(transaction(operations));
  const place = { family: 'ip', table: 'junction' };
  const read = (request, decode) => dumpMessages(socket, 'the table', request).map(({ payload }) => decode(payload));
  const elementsOf = async (set) =>
    readElements(channel, { ...place, set });
  const generation = () => decodeGeneration(socket.request(getGeneration()).messages[0].payload).id;
  const numbered = (count, data = 0, from = 0) => {
    const list = new ElementList();
    for (let index = from; index < from + count; index++)
      list.begin().index(index).data().index(data).comment('number ' + index).end();
    return list;
  };
  const drawn = { typeof: ['numgen random mod 7'] };
  const numbers = { name: 'numbers', key: drawn, data: drawn };
  const numbersTable = [{ kind: 'addTable', ...place }, { kind: 'addSet', ...place, set: numbers }];
  const add = (elements) => ({ kind: 'addElements', ...place, set: 'numbers', elements });
  const remove = (elements) => ({ kind: 'deleteElements', ...place, set: 'numbers', elements });
`;

/** Who is root of a user namespace alone has the system's send buffer, which holds 208 KiB. */
function requireLargeDatagrams(context: Parameters<typeof requireNamespaces>[0]): void {
  const isWholeMachine = /^\s*0\s+0\s+4294967295\s*$/.test(readFileSync('/proc/self/uid_map', 'utf8'));
  if (process.getuid?.() === 0 && isWholeMachine) return;
  const reason = 'a datagram of a megabyte needs a larger send buffer: run as root of the machine';
  if (process.env['CI'] === 'true') throw new Error(reason);
  context.skip(reason);
}

describe('in a namespace', () => {
  let namespace: Namespace;
  beforeEach(async (context) => {
    requireNamespaces(context);
    requireNft(context);
    namespace = await openNamespace();
  });
  afterEach(() => namespace.close());

  it('errors name their operations, and nothing is done', async () => {
    const answer = await inside(
      namespace,
      'errors',
      `${IMPORTS}
       const chain = (name) => ({ kind: 'addChain', ...place, chain: name });
       const twice = numbered(1);
       print([
         await commit(numbersTable),
         await commit([chain('fine'), { kind: 'deleteChain', ...place, chain: 'none' }, add(numbered(3000)),
           { ...add(numbered(1)), set: 'missing' }, remove(numbered(1, 0, 9999)), chain('fine too')]),
         await commit([add(numbered(1, 7)), add(numbered(1, 8))]),
         await commit([{ kind: 'deleteTable', ...place, table: 'none' }]),
         (await elementsOf('numbers')).length,
         read(getChains('ip'), decodeChain).length,
       ]);`,
    );
    const refused = (...refusals: readonly [operation: number, name: string][]): unknown => ({
      state: 'refused',
      refusals: refusals.map(([operation, name]) => ({
        operation,
        errno: expect.any(Number) as number,
        name,
      })),
    });
    expect(answer).toEqual([
      { state: 'done' },
      refused([1, 'ENOENT'], [3, 'ENOENT'], [4, 'ENOENT']),
      refused([1, 'EEXIST']),
      refused([0, 'ENOENT']),
      0,
      0,
    ]);
  });

  it('takes what is larger than the send buffer was, and refuses it without losing an answer', async (context) => {
    requireLargeDatagrams(context);
    const answer = await inside(
      namespace,
      'large',
      `${IMPORTS}
       const list = numbered(200_000);
       const missing = await commit([...numbersTable, { ...add(list), set: 'missing' }]);
       const added = await commit([...numbersTable, add(list)]);
       const removed = await commit([remove(list)]);
       print({ megabytes: list.length >> 20, added, removed, messages: missing.refusals.length,
         refusals: [...new Set(missing.refusals.map(({ operation, name }) => operation + ' ' + name))] });`,
    );
    expect(answer).toEqual({
      megabytes: 9,
      added: { state: 'done' },
      removed: { state: 'done' },
      messages: expect.any(Number) as number,
      refusals: ['2 ENOENT'],
    });
    expect((answer as { messages: number }).messages).toBeGreaterThan(100);
  });

  it('an owned table is its socket’s alone, and goes with it', async () => {
    const answer = await inside(
      namespace,
      'owned',
      `${IMPORTS}
       const other = NetlinkSocket.open(NETLINK_NETFILTER);
       const byOther = (operations) => directChannel(other).commit(transaction(operations));
       const own = { kind: 'addTable', ...place, isOwned: true };
       const made = await byOther([own]);
       const [table] = read(getTables('ip'), decodeTable);
       const refused = await commit([{ kind: 'addChain', ...place, chain: 'c' }]);
       spawnSync('nft', ['flush', 'ruleset']);
       const left = read(getTables('ip'), decodeTable).map(({ name }) => name);
       const changed = await byOther([{ kind: 'addChain', ...place, chain: 'c' }]);
       other.close();
       while (read(getTables('ip'), decodeTable).length > 0) await sleep(5);
       print({ states: [made, refused, changed].map(({ state, refusals }) => refusals?.[0]?.name ?? state),
         flags: table.flags, hasOwner: table.owner > 0, left });`,
    );
    expect(answer).toEqual({
      states: ['done', 'EPERM', 'done'],
      flags: 2,
      hasOwner: true,
      left: ['junction'],
    });
  });

  it('who listens hears every part of a transaction, and who made it', async () => {
    const answer = await inside(
      namespace,
      'monitor',
      `${IMPORTS}
       const sockets = new NetlinkSockets();
       const heard = [];
       await sockets.watch(NETLINK_NETFILTER, [NFNLGRP_NFTABLES], {
         messages: (messages) => heard.push(...messages.map((each) => ({ kind: operationOf(each), ...each }))),
         lost: () => heard.push({ kind: 'lost' }),
       });
       const generations = () => heard.filter(({ kind }) => kind === 'new generation');
       const until = async (count) => { while (generations().length < count) await sleep(5); };
       const rule = { kind: 'addRule', ...place, chain: 'c', expressions: [{ kind: 'verdict', verdict: 'drop' }] };
       await sockets.channel(NETLINK_NETFILTER).commit(transaction([...numbersTable, add(numbered(3)),
         { kind: 'addChain', ...place, chain: 'c' }, rule]));
       await until(1);
       const made = heard.splice(0);
       spawnSync('nft', ['delete', 'table', 'ip', 'junction']);
       while (generations().length < 1) await sleep(5);
       const deleted = heard.splice(0);
       await sockets.close();
       const count = (news) => Object.fromEntries([...new Set(news.map(({ kind }) => kind))].sort().map((kind) =>
         [kind, news.filter((each) => each.kind === kind).length]));
       const [{ expressions }] = made.filter(({ kind }) => kind === 'new rule').map(({ payload }) => decodeRule(payload));
       print({ made: count(made), deleted: count(deleted), who: decodeGeneration(deleted.at(-1).payload).processName, expressions });`,
    );
    const counts = { table: 1, chain: 1, rule: 1, set: 1, elements: 3, generation: 1 };
    expect(answer).toMatchObject({
      made: Object.fromEntries(Object.entries(counts).map(([what, count]) => [`new ${what}`, count])),
      deleted: { 'delete table': 1, 'delete rule': 1, 'delete set': 1, 'new generation': 1 },
      who: 'nft',
      expressions: [{ kind: 'verdict', verdict: 'drop' }],
    });
  });
});
