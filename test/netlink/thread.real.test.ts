/** The thread against a real kernel, and how a process ends that has one. */
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
  import { NetlinkThread } from './src/netlink/thread.ts';
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
    ])('%s', async (_, source, code, printed) => {
      const script = await bundle(
        'exit',
        `${IMPORTS}
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
