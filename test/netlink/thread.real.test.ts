/** The thread against a real kernel, and how a process ends that has one. */
import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bundle } from '../system/support/bundle.ts';
import { inside, output } from '../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../system/support/namespace.ts';

const IMPORTS = `
  import { setTimeout as sleep } from 'node:timers/promises';
  import { NLM_F_CREATE, NLM_F_DUMP } from './src/netlink/codec.ts';
  import { addAddress, decodeAddress, deleteAddress, getAddresses } from './src/netlink/rtnetlink.ts';
  import { applyChanges, listAddresses } from './test/netlink/support/readers.ts';
  import { decodeLink, getLink, getLinks, newLink } from './src/netlink/rtnetlink.ts';
  import { NETLINK_ROUTE, NetlinkSocket } from './src/netlink/socket.ts';
  import { RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_LINK } from './src/netlink/rtnetlink.ts';
  import { NetlinkThread } from './src/netlink/thread.ts';
  const print = (value) => console.log(JSON.stringify(value));
  const ips = (count) => Array.from({ length: count }, (_, i) => '10.1.' + (i >> 8) + '.' + (i & 255));
  const counted = (items) => Object.fromEntries([...new Set(items)].sort().map((item) =>
    [item, items.filter((other) => other === item).length]));
  const until = async (isSo) => {
    for (let attempt = 0; !isSo(); attempt++) {
      if (attempt === 4000) throw new Error('it never came so');
      await sleep(5);
    }
  };
  const linkIndex = async (channel, name) => {
    const { messages } = await channel.request(getLink(name));
    return decodeLink(messages[0].payload).index;
  };
`;

describe('in a namespace', () => {
  let namespace: Namespace;
  beforeEach(async (context) => {
    requireNamespaces(context);
    namespace = await openNamespace();
  });
  afterEach(() => namespace.close());

  it('tells who wants to hear of others nothing of its own doing', async () => {
    const answer = await inside(
      namespace,
      'thread',
      `${IMPORTS}
       import { directChannel } from './src/netlink/channel.ts';
       import { NFNLGRP_NFTABLES } from './src/netlink/nftables/message.ts';
       import { decodeNotification } from './src/netlink/nftables/notifications.ts';
       import { transaction } from './src/netlink/nftables/transaction.ts';
       import { NETLINK_NETFILTER } from './src/netlink/socket.ts';
       const thread = await NetlinkThread.start();
       const heard = { all: [], others: [] };
       const record = (into) => ({
         messages: (messages) => into.push(...messages.map(decodeNotification).flatMap(({ table }) => table?.name ?? [])),
         lost: () => into.push('lost'),
       });
       await thread.watch(NETLINK_NETFILTER, [NFNLGRP_NFTABLES], record(heard.all));
       await thread.watch(NETLINK_NETFILTER, [NFNLGRP_NFTABLES], record(heard.others), { othersOnly: true });
       const newTable = (table) => transaction([{ kind: 'addTable', family: 'ip', table }]);
       await thread.transactionChannel(NETLINK_NETFILTER).commit(newTable('ours'));
       const other = NetlinkSocket.open(NETLINK_NETFILTER);
       await directChannel(other).commit(newTable('theirs'));
       await until(() => heard.all.includes('theirs') && heard.others.includes('theirs'));
       other.close();
       await thread.close();
       print(heard);
      `,
    );
    expect(answer).toEqual({ all: ['ours', 'theirs'], others: ['theirs'] });
  });

  it('a thread that is ended from outside leaves no socket behind, nor what a socket owns', async () => {
    const answer = await inside(
      namespace,
      'thread',
      `${IMPORTS}
       import { readdirSync } from 'node:fs';
       import { createRequire, syncBuiltinESMExports } from 'node:module';
       import { NFNLGRP_NFTABLES } from './src/netlink/nftables/message.ts';
       import { getTable } from './src/netlink/nftables/objects.ts';
       import { transaction } from './src/netlink/nftables/transaction.ts';
       import { NETLINK_NETFILTER } from './src/netlink/socket.ts';
       const threads = createRequire(import.meta.url)('node:worker_threads');
       const workers = [];
       threads.Worker = class extends threads.Worker {
         constructor(...args) { super(...args); workers.push(this); }
       };
       syncBuiltinESMExports();
       const open = () => readdirSync('/proc/self/fd').length;
       const thread = await NetlinkThread.start();
       let lost = 0;
       await thread.watch(NETLINK_NETFILTER, [NFNLGRP_NFTABLES], { messages: () => {}, lost: () => lost++ });
       const channel = thread.transactionChannel(NETLINK_NETFILTER);
       const place = { family: 'ip', table: 'own' };
       const isThere = async () => (await channel.request(getTable(place))).kind === 'answered';
       await channel.commit(transaction([{ kind: 'addTable', ...place, isOwned: true }]));
       const before = { isThere: await isThere(), open: open() };
       await workers[0].terminate();
       await until(() => lost === 1);
       const after = { isThere: await isThere(), open: open() };
       await thread.close();
       print({ before: before.isThere, after: after.isThere, more: after.open - before.open, workers: workers.length });
      `,
    );
    expect(answer).toEqual({ before: true, after: false, more: 0, workers: 2 });
  });

  it('makes thousands of changes in one call, and whoever watches sees them all', async () => {
    const answer = await inside(
      namespace,
      'thread',
      `${IMPORTS}
       const thread = await NetlinkThread.start();
       const channel = thread.channel(NETLINK_ROUTE);
       const heard = [];
       const watch = await thread.watch(NETLINK_ROUTE, [RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR], {
         messages: (messages) => heard.push(...messages),
         lost: () => heard.push({ type: 'lost' }),
       });
       const made = await channel.apply([newLink('vip0', 'bridge'), newLink('vip0', 'bridge'), newLink('vip1', 'bridge')]);
       const index = await linkIndex(channel, 'vip0');
       const sixes = Array.from({ length: 100 }, (_, i) => 'fd00::' + (i + 1).toString(16));
       // Every seventh is there already when its turn comes again.
       const all = [...ips(5000), ...ips(5000).filter((_, i) => i % 7 === 0), ...sixes];
       const outcomes = await channel.apply(all.map((ip) => addAddress(index, ip)));
       const [addresses, links] = await channel.dumpAll([getAddresses(), getLinks()]);
       const ours = addresses.messages.map(({ payload }) => decodeAddress(payload)).filter((a) => a.linkIndex === index);
       await until(() => heard.filter(({ type }) => type === 20).length >= 5100);
       await watch.close();
       const removed = await channel.apply(ips(5000).map((ip) => deleteAddress(index, ip)));
       await thread.close();
       print({
         made: made.map(({ state }) => state),
         outcomes: counted(outcomes.map(({ state }) => state)),
         repeated: counted(outcomes.slice(5000, 5715).map(({ state }) => state)),
         addresses: ours.length,
         links: links.messages.map(({ payload }) => decodeLink(payload).name).sort(),
         addressesHeard: heard.filter(({ type }) => type === 20).length,
         linksHeard: [...new Set(heard.filter(({ type }) => type === 16).map(({ payload }) => decodeLink(payload).name))].sort(),
         lost: heard.some(({ type }) => type === 'lost'),
         goneHeard: heard.filter(({ type }) => type === 21).length,
         removed: counted(removed.map(({ state }) => state)),
       });`,
    );
    const links = (JSON.parse(await output(namespace, 'ip', '-json', 'link')) as { ifname: string }[])
      .map(({ ifname }) => ifname)
      .sort();
    expect(answer).toEqual({
      made: ['done', 'exists', 'done'],
      outcomes: { done: 5100, exists: 715 },
      repeated: { exists: 715 },
      addresses: 5100,
      links,
      addressesHeard: 5100,
      linksHeard: ['vip0', 'vip1'],
      lost: false,
      goneHeard: 0,
      removed: { done: 5000 },
    });
  });

  it('tells when a request is not answered, and when messages were lost meanwhile', async () => {
    await output(namespace, 'ip', 'link', 'add', 'vip0', 'type', 'bridge');
    const answer = await inside(
      namespace,
      'lost',
      `${IMPORTS}
       const thread = await NetlinkThread.start({ timeoutMs: 4000 });
       const channel = thread.channel(NETLINK_ROUTE);
       const index = await linkIndex(channel, 'vip0');
       let lost = 0;
       let heard = 0;
       await thread.watch(NETLINK_ROUTE, [RTNLGRP_IPV4_IFADDR], {
         messages: (messages) => (heard += messages.length),
         lost: () => (lost += 1),
       });
       // An address that is added with the flags of a dump: nobody acknowledges what succeeds.
       const unanswered = { ...addAddress(index, '10.9.9.9'), flags: NLM_F_CREATE | NLM_F_DUMP };
       const waiting = channel.request(unanswered).catch(({ code }) => code);
       // The worker waits for the answer and reads no news: more of them than any socket holds.
       const direct = NetlinkSocket.open(NETLINK_ROUTE);
       await until(() => listAddresses(direct).some(({ ip }) => ip === '10.9.9.9'));
       const addresses = ips(2000);
       for (let round = 0; round < 20; round++) {
         applyChanges(direct, addresses.map((ip) => addAddress(index, ip)));
         applyChanges(direct, addresses.map((ip) => deleteAddress(index, ip)));
       }
       const code = await waiting;
       await until(() => lost > 0);
       const before = heard;
       const after = await channel.apply([addAddress(index, '10.8.8.8')]);
       await until(() => heard > before);
       await thread.close();
       print({ code, after, lost: lost > 0 });`,
    );
    expect(answer).toEqual({ code: 'NETLINK_TIMED_OUT', after: [{ state: 'done' }], lost: true });
  });

  it('refuses a group that there is not', async () => {
    const answer = await inside(
      namespace,
      'noGroup',
      `${IMPORTS}
       const thread = await NetlinkThread.start();
       const failed = await thread.watch(NETLINK_ROUTE, [4000], {}).catch(({ code, message }) => ({ code, message }));
       const refused = await thread.channel(77).request(getLinks()).catch(({ code, message }) => ({ code, message }));
       print([failed, refused, (await thread.channel(NETLINK_ROUTE).request(getLink('lo'))).kind]);`,
    );
    expect(answer).toEqual([
      { code: 'NETLINK_FAILED', message: 'netlink: cannot join the group 4000: EINVAL' },
      { code: 'NETLINK_FAILED', message: expect.stringContaining('socket of protocol 77') },
      'answered',
    ]);
  });

  describe('a process ends', () => {
    const ENDS_BADLY = `process.on('exit', () => { throw new Error('accident'); });`;
    /** More than a second of work, in the midst of which the process ends. */
    const BUSY = `
      await channel.apply([newLink('vip0', 'bridge')]);
      const index = await linkIndex(channel, 'vip0');
      const work = channel.apply(ips(40_000).map((ip) => addAddress(index, ip)));
      await until(() => heard > 2000);`;

    it.each<[name: string, source: string, code: number, printed: string, before?: string]>([
      ['by itself, with an open watch', '', 0, ''],
      ['by process.exit with an open watch', 'process.exit(3);', 3, ''],
      [
        'by an uncaught exception with an open watch',
        `setTimeout(() => { throw new Error('accident'); });`,
        1,
        '',
      ],
      ['by an unhandled rejection', `void Promise.reject(new Error('accident'));`, 1, ''],
      ['by itself, although an exit listener throws that was there before', '', 1, '', ENDS_BADLY],
      ['by process.exit in the midst of a big job', `${BUSY} void work; process.exit(3);`, 3, ''],
      [
        'by an uncaught exception in the midst of a big job',
        `${BUSY} setTimeout(() => { throw new Error('accident'); });`,
        1,
        '',
      ],
      [
        'by itself, when the thread was closed in the midst of a big job',
        `${BUSY} await Promise.all([work.catch(({ code }) => console.log(code)), thread.close()]);`,
        0,
        'NETLINK_FAILED\n',
      ],
      [
        'by itself, but not before a job is done',
        `channel.request(getLink('lo')).then(({ kind }) => console.log(kind));`,
        0,
        'answered\n',
      ],
    ])('%s', async (_, source, code, printed, before = '') => {
      const script = await bundle(
        'exit',
        `${IMPORTS}
         ${before}
         const thread = await NetlinkThread.start();
         const channel = thread.channel(NETLINK_ROUTE);
         let heard = 0;
         await thread.watch(NETLINK_ROUTE, [RTNLGRP_IPV4_IFADDR], {
           messages: (messages) => (heard += messages.length),
           lost: () => undefined,
         });
         ${source}`,
      );
      // One that hangs is killed and fails the test.
      const result = await namespace.runner([process.execPath, script], { timeoutMs: 200_000 });
      await rm(script);
      expect({ code: result.code, stdout: result.stdout }).toEqual({ code, stdout: printed });
    });
  });
});
