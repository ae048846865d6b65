/** Which changes of iptables' tables the kernel tells of, and of whom. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inside } from '../../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../system/support/namespace.ts';

const IMPORTS = `
  import { setTimeout as sleep } from 'node:timers/promises';
  import { OwnPrograms } from './src/modes/iptables/rulesetWatch.ts';
  import { RulesetWatch } from './src/modes/iptables/rulesetWatch.ts';
  import { NetlinkThread } from './src/netlink/thread.ts';
  import { NETLINK_NETFILTER } from './src/netlink/socket.ts';
  import { NetlinkWriter } from './src/modes/iptables/netlink/writer.ts';
  import { piece } from './src/modes/iptables/rules/edit.ts';
  import { run } from './src/system/processes.ts';
  const observer = new OwnPrograms();
  const thread = await NetlinkThread.start();
  const watch = await RulesetWatch.start(thread, observer);
  const heard = [];
  const plain = (touched) => [...touched].map(([table, { isGone, isDormant, chains }]) =>
    [table, isGone ? 'gone' : isDormant ? 'dormant' : 'there', ...[...chains].map(([chain, touch]) => chain + ' ' + touch)].join(', '));
  for (const family of ['IPv4', 'IPv6']) watch.subscribe({
    family,
    onChange: (touched, { processName, processId }) => heard.push([family, processName, processId > 0, ...plain(touched)]),
    onLost: (changedBy) => heard.push([family, 'lost', changedBy?.processName]),
  });
  const program = async (argv, stdin, options) => {
    const { code, stderr } = await run(argv, { stdin, ...options });
    if (code !== 0) throw new Error(argv.join(' ') + ': ' + stderr);
  };
  const restore = (text, options) => program(['iptables-nft-restore', '--noflush'], '*nat\\n' + text + '\\nCOMMIT\\n', options);
  /** Everything before it has been heard when this one is. */
  const end = async () => {
    await program(['iptables-nft', '-t', 'nat', '-N', 'KUBE-END']);
    for (let tries = 0; !heard.some((each) => String(each.at(-1)).includes('KUBE-END')); tries++) {
      if (tries > 4000) throw new Error('no end: ' + JSON.stringify(heard));
      await sleep(5);
    }
    await watch.close();
    await thread.close();
    console.log(JSON.stringify(heard.filter((each) => !String(each.at(-1)).includes('KUBE-END'))));
  };
`;

describe('in a namespace', () => {
  let namespace: Namespace;
  beforeEach(async (context) => {
    requireNamespaces(context);
    namespace = await openNamespace();
  });
  afterEach(() => namespace.close());
  const heard = (source: string): Promise<unknown> =>
    inside(namespace, 'watch', `${IMPORTS}\n${source}\nawait end();`);

  it('tells nothing of what we write by netlink, before and after another program, and by another socket', async () => {
    const answer = await heard(`
      const channel = thread.transactionChannel(NETLINK_NETFILTER);
      const writer = new NetlinkWriter('IPv4', channel);
      const other = new NetlinkWriter('IPv6', channel);
      const write = (each, name) => each.commit({ table: 'nat', pieces: [piece(undefined, { writes: [{ name, rules: [{ matches: [], target: { kind: 'accept' } }] }] })] });
      for (const round of [1, 2, 3]) {
        await write(writer, 'KUBE-OURS-' + round);
        await restore(':KUBE-THEIRS-' + round + ' - [0:0]');
        await write(other, 'KUBE-OURS-' + round);
        // An exchange that fails ends the socket; the next one has another name.
        await channel.commit(() => ({ bytes: new Uint8Array(4), exchanges: [{ bytes: 4, last: 1 }], take() {}, result() {} })).catch(() => undefined);
      }
    `);
    const theirs = (round: number): readonly unknown[] => [
      'IPv4',
      'iptables-nft-re',
      true,
      `nat, there, KUBE-THEIRS-${round} added`,
    ];
    expect(answer).toEqual([theirs(1), theirs(2), theirs(3)]);
  });

  it('tells of chains that may be ours and of jumps to them, with the program, and of nothing else', async () => {
    const answer = await heard(`
      await restore(':KUBE-SERVICES - [0:0]\\n:DOCKER - [0:0]\\n-A PREROUTING -j KUBE-SERVICES\\n-A OUTPUT -j DOCKER');
      await program(['iptables-nft', '-t', 'nat', '-D', 'OUTPUT', '-j', 'DOCKER']);
      await program(['iptables-nft', '-t', 'nat', '-D', 'PREROUTING', '-j', 'KUBE-SERVICES']);
      await program(['iptables-nft', '-t', 'nat', '-X', 'KUBE-SERVICES']);
      await program(['nft', 'add', 'table', 'inet', 'nat']);
      await program(['nft', 'flush', 'ruleset']);
    `);
    expect(answer).toEqual([
      ['IPv4', 'iptables-nft-re', true, 'nat, there, KUBE-SERVICES added'],
      ['IPv4', 'iptables-nft', true, 'nat, there, PREROUTING deleted'],
      ['IPv4', 'iptables-nft', true, 'nat, there, KUBE-SERVICES deleted'],
      ['IPv4', 'nft', true, 'nat, gone'],
    ]);
  });

  it('tells of a table that is made dormant, and not of one that wakes', async () => {
    const answer = await heard(`
      await restore(':KUBE-SERVICES - [0:0]');
      await program(['nft', 'add table ip nat { flags dormant; }']);
      await program(['nft', 'add table ip nat']);
      await program(['nft', 'add table ip own { flags dormant; }']);
    `);
    expect(answer).toEqual([
      ['IPv4', 'iptables-nft-re', true, 'nat, there, KUBE-SERVICES added'],
      ['IPv4', 'nft', true, 'nat, dormant'],
    ]);
  });

  it('says nothing of our own programs, however much they write', async () => {
    const answer = await heard(`
      const rules = Array.from({ length: 20000 }, (_, i) => '-A KUBE-MANY -s 10.' + (i >> 8) + '.' + (i & 255) + '.1 -j RETURN');
      await restore(':KUBE-MANY - [0:0]\\n' + rules.join('\\n'), { observer });
      await program(['iptables-nft', '-t', 'nat', '-N', 'KUBE-OWN'], '', { observer });
    `);
    expect(answer).toEqual([]);
  });

  it('names the program also where there was too much to be told', async () => {
    const answer = await heard(`
      const rules = Array.from({ length: 30000 }, (_, i) =>
        '-A KUBE-MANY -s 10.' + (i >> 8) + '.' + (i & 255) + '.1 -m comment --comment "of the service number ' + i + '" -j RETURN');
      await restore(':KUBE-MANY - [0:0]\\n' + rules.join('\\n'), { observer });
      // Nobody reads meanwhile: a quick reader might keep up.
      await program(['sh', '-c', 'kill -STOP $PPID; iptables-nft -t nat -F KUBE-MANY; kill -CONT $PPID']);
      for (let tries = 0; heard.length === 0 && tries < 4000; tries++) await sleep(5);
    `);
    // The socket may overflow more than once.
    const families = new Set((answer as readonly string[][]).map((each) => each.join(' ')));
    expect(families).toEqual(new Set(['IPv4 lost iptables-nft', 'IPv6 lost iptables-nft']));
  });
});
