/** What another program does to packets or to our table, with real packets: the reader of the kernel says it. */
import { afterAll, expect, test } from 'vitest';
import { prefixed } from '../../lab/prefixed.ts';
import type { TraceStep, WalkResult } from '../../src/modes/kernelRules.ts';
import { run } from '../../src/system/processes.ts';
import { GuestNode } from '../guest/guestNode.ts';
import { useLab } from '../lab/requireLab.ts';
import { testProgram } from '../support/programs.ts';
import { requireNft } from '../modes/nftables/rules/requireNft.ts';
import { PacketSender } from './labPackets.ts';
import { printWalk } from './expectations.ts';
import { service, slice } from './objects.ts';
import { type Fate, printRow, type Row } from './packets.ts';
import { scenario } from './scenario.ts';

const lab = useLab();
let node: GuestNode | undefined;

afterAll(async () => {
  await node?.close();
});

const OBJECTS = [
  service('web', { clusterIP: '10.96.1.1', type: 'NodePort', ports: '80:30080' }),
  slice('web', '8080', 'pod-a', 'pod-c'),
];

interface Deed {
  readonly name: string;
  /** What nft is told, after which packets become what the rows say. */
  readonly commands: readonly string[];
  readonly packets: string;
  /** Of packets that are stopped: the rule that does it. */
  readonly stoppedBy?: readonly string[];
}

const DEEDS: readonly Deed[] = [
  {
    name: 'a drop before our rules',
    commands: [
      'add table inet fw',
      'add chain inet fw early { type filter hook prerouting priority -150; }',
      'add rule inet fw early ip saddr 192.0.2.0/24 tcp dport { 80, 30080 } counter drop',
    ],
    packets: `
      client  tcp 192.168.100.2:30080  -> drop
      client  tcp 10.96.1.1:80         -> drop
      pod-a   tcp 10.96.1.1:80         -> pod-a* pod-c
      node1   tcp 10.96.1.1:80         -> pod-a* pod-c*
    `,
    stoppedBy: [
      'theirs inet fw early: ip saddr 192.0.2.0/24 tcp dport @__set0 counter packets N bytes N drop',
    ],
  },
  {
    name: 'a drop of what is forwarded, which sees the endpoint',
    commands: [
      'add table ip fw',
      'add chain ip fw f { type filter hook forward priority 0; }',
      'add rule ip fw f tcp dport 8080 ip daddr 10.244.0.0/16 drop',
    ],
    packets: `
      client  tcp 192.168.100.2:30080  -> drop
      client  tcp 10.96.1.1:80         -> drop
      node1   tcp 10.96.1.1:80         -> pod-a* pod-c*
    `,
    stoppedBy: ['theirs ip fw f: tcp dport 8080 ip daddr 10.244.0.0/16 drop'],
  },
  {
    name: 'a policy, with an exception',
    commands: [
      'add table inet fw',
      'add chain inet fw f { type filter hook forward priority 10; policy drop; }',
      'add rule inet fw f ct state established,related accept',
      'add rule inet fw f ip saddr 10.244.0.0/16 accept',
    ],
    packets: `
      client  tcp 192.168.100.2:30080  -> drop
      pod-a   tcp 10.96.1.1:80         -> pod-a* pod-c
    `,
    stoppedBy: ['theirs inet fw f: policy drop'],
  },
  {
    name: 'a rule of theirs in our table',
    commands: ['insert rule ip $table services tcp dport 30080 drop'],
    packets: `
      client  tcp 192.168.100.2:30080  -> drop
      client  tcp 10.96.1.1:80         -> pod-a* pod-c*
    `,
    stoppedBy: ['ours ip $table services: tcp dport 30080 drop'],
  },
  {
    name: 'a set without its elements',
    commands: ['flush set ip $table service-ips'],
    packets: `
      client  tcp 10.96.1.1:80         -> reject
      pod-a   tcp 10.96.1.1:80         -> reject
      client  tcp 192.168.100.2:30080  -> pod-a* pod-c*
    `,
    stoppedBy: ['ours ip $table unserved: ip daddr @cluster-ips fib daddr type != local reject'],
  },
  {
    name: 'no rules at all',
    commands: ['flush table ip $table'],
    packets: `
      client  tcp 10.96.1.1:80         -> pass
      client  tcp 192.168.100.2:30080  -> pass
    `,
  },
  {
    name: 'a chain that is gone',
    commands: ['flush chain ip $table unserved-prerouting', 'delete chain ip $table unserved-prerouting'],
    packets: `
      client  tcp 10.96.1.1:81         -> pass
      client  tcp 10.96.1.1:80         -> pod-a* pod-c*
    `,
  },
];

test.for(DEEDS)('$name', async ({ commands, packets, stoppedBy = [] }, context) => {
  requireNft(context);
  node ??= await GuestNode.start(lab(), 'nftables-unprotected', testProgram('node'));
  const inside = prefixed(run, ['nsenter', `--net=/proc/${lab().host('node1').pid}/ns/net`]);
  const nft = async (command: string): Promise<void> => {
    const { code, stderr } = await inside(['nft', command]);
    expect({ command, code, stderr }).toEqual({ command, code: 0, stderr: '' });
  };
  const given = scenario(context.task.name, OBJECTS, packets);
  await node.apply(given);
  expect(await node.compare('IPv4')).toEqual([]);
  const { stdout } = await inside(['nft', 'list', 'tables', 'ip']);
  const named = (text: string): string => text.replace('$table', /junction-[ab]/.exec(stdout)?.[0] ?? '');
  for (const command of commands) await nft(named(command));
  try {
    const expected = given.rows.map((row) => printRow(row, row.fate));
    const walks = await node.walk(given.rows);
    expect(given.rows.map((row, index) => printWalked(row, walks[index]))).toEqual(expected);
    expect([...new Set(walks.flatMap(stopsOf))]).toEqual(stoppedBy.map(named));
    const pairs = given.rows.map((row): readonly [Row, Fate] => [row, row.fate]);
    expect(await new PacketSender(lab()).send(pairs)).toEqual(expected);
    const isOurs = commands.some((command) => command.includes('$table'));
    expect((await node.compare('IPv4')).length > 0).toBe(isOurs);
  } finally {
    for (const family of ['ip', 'inet']) {
      await nft(`add table ${family} fw`);
      await nft(`delete table ${family} fw`);
    }
    await node.resync();
  }
});

function printWalked(row: Row, walk: WalkResult | undefined): string {
  return walk ? printWalk(row, walk) : 'not walked';
}

/** Whose rule ended the way of a packet that is dropped or rejected. */
function stopsOf({ outcomes }: WalkResult): readonly string[] {
  return outcomes.flatMap(({ kind, path }) =>
    kind === 'drop' || kind === 'reject' ? path.slice(-1).map(printStop) : [],
  );
}

function printStop({ table, chain, text, isForeign }: TraceStep): string {
  const plain = text.replace(/packets \d+ bytes \d+/, 'packets N bytes N');
  return `${isForeign === true ? 'theirs' : 'ours'} ${table} ${chain}: ${plain}`;
}
