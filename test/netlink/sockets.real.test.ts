/** The sockets against a real kernel, and how a process ends that has one. */
import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bundle } from '../system/support/bundle.ts';
import { inside, output } from '../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../system/support/namespace.ts';

const IMPORTS = `
  import { setTimeout as sleep } from 'node:timers/promises';
  import { NLM_F_CREATE, NLM_F_DUMP } from './src/netlink/codec.ts';
  import { RTNLGRP_IPV4_IFADDR, addAddress, decodeLink, deleteAddress, getLink, newLink } from './src/netlink/rtnetlink.ts';
  import { applyChanges, listAddresses } from './test/netlink/support/readers.ts';
  import { NETLINK_ROUTE, NetlinkSocket } from './src/netlink/socket.ts';
  import { SyncSocket } from './test/netlink/support/syncSocket.ts';
  import { NetlinkSockets } from './src/netlink/sockets.ts';
  const print = (value) => console.log(JSON.stringify(value));
  const ips = (count) => Array.from({ length: count }, (_, i) => '10.1.' + (i >> 8) + '.' + (i & 255));
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
      'sockets',
      `${IMPORTS}
       import { directChannel } from './test/netlink/support/directChannel.ts';
       import { NFNLGRP_NFTABLES, namesIn } from './src/netlink/nftables/message.ts';
       import { transaction } from './src/netlink/nftables/transaction.ts';
       import { NETLINK_NETFILTER } from './src/netlink/socket.ts';
       const sockets = new NetlinkSockets();
       const heard = { all: [], others: [] };
       const record = (into) => ({
         messages: (messages) => into.push(...messages.flatMap((each) => namesIn(each).table ?? [])),
         lost: () => into.push('lost'),
       });
       await sockets.watch(NETLINK_NETFILTER, [NFNLGRP_NFTABLES], record(heard.all));
       await sockets.watch(NETLINK_NETFILTER, [NFNLGRP_NFTABLES], record(heard.others), { othersOnly: true });
       const newTable = (table) => transaction([{ kind: 'addTable', family: 'ip', table }]);
       await sockets.channel(NETLINK_NETFILTER).commit(newTable('ours'));
       const other = NetlinkSocket.open(NETLINK_NETFILTER);
       await directChannel(other).commit(newTable('theirs'));
       await until(() => heard.all.includes('theirs') && heard.others.includes('theirs'));
       other.close();
       await sockets.close();
       print(heard);
      `,
    );
    expect(answer).toEqual({ all: ['ours', 'theirs'], others: ['theirs'] });
  });

  it('tells when a request is not answered, and when messages were lost meanwhile', async () => {
    await output(namespace, 'ip', 'link', 'add', 'vip0', 'type', 'bridge');
    const answer = await inside(
      namespace,
      'lost',
      `${IMPORTS}
       const sockets = new NetlinkSockets();
       const channel = sockets.channel(NETLINK_ROUTE);
       const index = await linkIndex(channel, 'vip0');
       let lost = 0;
       let heard = 0;
       await sockets.watch(NETLINK_ROUTE, [RTNLGRP_IPV4_IFADDR], {
         messages: (messages) => (heard += messages.length),
         lost: () => (lost += 1),
       });
       // An address that is added with the flags of a dump: nobody acknowledges what succeeds.
       const unanswered = { ...addAddress(index, '10.9.9.9'), flags: NLM_F_CREATE | NLM_F_DUMP };
       const waiting = channel.request(unanswered).catch(({ code }) => code);
       // This thread changes addresses and reads no news: more of them than any socket holds.
       const direct = SyncSocket.open(NETLINK_ROUTE);
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
       await sockets.close();
       print({ code, after, lost: lost > 0 });`,
    );
    expect(answer).toEqual({ code: 'NETLINK_TIMED_OUT', after: [{ state: 'done' }], lost: true });
  });

  const NFT = `
    import { spawnSync } from 'node:child_process';
    import { closeSync, openSync, promises as fs } from 'node:fs';
    import { directChannel } from './test/netlink/support/directChannel.ts';
    import { NFNLGRP_NFTABLES, operationOf } from './src/netlink/nftables/message.ts';
    import { transaction } from './src/netlink/nftables/transaction.ts';
    import { NETLINK_NETFILTER } from './src/netlink/socket.ts';
    const place = { family: 'ip', table: 'ours' };
    const sockets = new NetlinkSockets();
    const channel = sockets.channel(NETLINK_NETFILTER);
    const commit = (...operations) => channel.commit(transaction(operations.map((each) => ({ ...place, ...each }))));
    let generations = 0;
    let lost = 0;
    const watch = (options) => sockets.watch(NETLINK_NETFILTER, [NFNLGRP_NFTABLES], {
      messages: (messages) => (generations += messages.filter((each) => operationOf(each) === 'new generation').length),
      lost: () => (lost += 1),
    }, options);
  `;

  it('commits and hears of changes while files that hang fill the pool of libuv', async () => {
    const answer = await inside(
      namespace,
      'fullPool',
      `${IMPORTS}${NFT}
       await watch();
       await commit({ kind: 'addTable' });
       await until(() => generations === 1);
       const folder = await fs.mkdtemp('/tmp/junction-pool-');
       const fifos = [1, 2, 3, 4].map((each) => folder + '/' + each);
       spawnSync('mkfifo', fifos);
       const reads = fifos.map((each) => fs.readFile(each, 'latin1'));
       await sleep(50);
       const began = performance.now();
       const outcome = await commit({ kind: 'addChain', chain: 'a' }, { kind: 'addChain', chain: 'b' });
       const elapsed = performance.now() - began;
       await until(() => generations === 2);
       const hung = await Promise.race([Promise.any(reads), sleep(1, 'hung')]);
       for (const each of fifos) closeSync(openSync(each, 'w'));
       const released = await Promise.all(reads);
       const after = await commit({ kind: 'deleteTable' });
       await until(() => generations === 3);
       await fs.rm(folder, { recursive: true });
       await sockets.close();
       print({ outcome, isSoon: elapsed < 1000, hung, released, after, lost });`,
    );
    const done = { state: 'done' };
    const released = ['', '', '', ''];
    expect(answer).toEqual({ outcome: done, isSoon: true, hung: 'hung', released, after: done, lost: 0 });
  });

  it('loses no notification of 3,000 commits', async () => {
    const answer = await inside(
      namespace,
      'soak',
      `${IMPORTS}${NFT}
       await watch();
       await commit({ kind: 'addTable' });
       for (let count = 0; count < 2999; count++) await commit({ kind: 'addChain', chain: 'c' + (count % 50) });
       await until(() => generations === 3000);
       await sockets.close();
       print({ generations, lost });`,
    );
    expect(answer).toEqual({ generations: 3000, lost: 0 });
  });

  it('says that the outcome of a transaction is unknown where its answers were lost, and still owns the table', async () => {
    const answer = await inside(
      namespace,
      'overrun',
      `${IMPORTS}${NFT}
       await watch({ othersOnly: true });
       await commit({ kind: 'addTable', isOwned: true });
       // Each of these is refused, and all refusals wait in the receive buffer.
       const absent = Array.from({ length: 20_000 }, (_, index) => ({ kind: 'deleteChain', chain: 'c' + index }));
       const error = await commit(...absent).catch(({ message }) => message);
       const after = await commit({ kind: 'addChain', chain: 'a' });
       const other = NetlinkSocket.open(NETLINK_NETFILTER);
       const theirs = await directChannel(other).commit(transaction([{ kind: 'deleteTable', ...place }]));
       other.close();
       await sockets.close();
       print({ error, after, theirs: theirs.refusals[0].name, generations });`,
    );
    expect(answer).toEqual({
      error: expect.stringContaining('ENOBUFS'),
      after: { state: 'done' },
      theirs: 'EPERM',
      generations: 0,
    });
  });

  describe('a process ends', () => {
    /** More than a second of work, in the midst of which the process ends. */
    const BUSY = `
      await channel.apply([newLink('vip0', 'bridge')]);
      const index = await linkIndex(channel, 'vip0');
      const work = channel.apply(ips(40_000).map((ip) => addAddress(index, ip)));
      await until(() => heard > 2000);`;

    it.each<[name: string, source: string, code: number, printed: string]>([
      ['by process.exit in the midst of a big job', `${BUSY} void work; process.exit(3);`, 3, ''],
      [
        'by an uncaught exception in the midst of a big job',
        `${BUSY} setTimeout(() => { throw new Error('accident'); });`,
        1,
        '',
      ],
      [
        'by itself, when the sockets were closed in the midst of a big job',
        `${BUSY} await Promise.all([work.catch(({ code }) => console.log(code)), sockets.close()]);`,
        0,
        'NETLINK_FAILED\n',
      ],
      [
        'by itself, when the watch was closed and a job is done',
        `channel.request(getLink('lo')).then(({ kind }) => console.log(kind));
         await watch.close();`,
        0,
        'answered\n',
      ],
    ])('%s', async (_, source, code, printed) => {
      const script = await bundle(
        'exit',
        `${IMPORTS}
         const sockets = new NetlinkSockets();
         const channel = sockets.channel(NETLINK_ROUTE);
         let heard = 0;
         const watch = await sockets.watch(NETLINK_ROUTE, [RTNLGRP_IPV4_IFADDR], {
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
