/** The program nft changes our table while we change it too, and nobody is notified: a look beside the syncs finds it. */
import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundle } from '../../system/support/bundle.ts';
import { output } from '../../system/support/inside.ts';
import { openNamespace, requireNamespaces } from '../../system/support/namespace.ts';
import { requireNft } from './rules/requireNft.ts';

/**
 * Writes a cluster, lets nft do its deed, and looks while a service changes all the time. Prints what the look and the next
 * sync said, how many changes there were, and whether the table is as a fresh start would have written it.
 */
const PROGRAM = `
  import { execFileSync } from 'node:child_process';
  import { NETLINK_NETFILTER } from './src/netlink/socket.ts';
  import { NetlinkThread } from './src/netlink/thread.ts';
  import { NetlinkNftClient } from './src/modes/nftables/client.ts';
  import { Cluster } from './test/plan/cluster.ts';
  import { cidr, VIEW } from './test/plan/given.ts';
  import { Harness } from './test/modes/nftables/rules/harness.ts';
  import { inOneOrder } from './test/modes/nftables/rules/listings.ts';
  const [deed, withSizes] = JSON.parse(process.argv[2]);
  const thread = await NetlinkThread.start();
  const client = new NetlinkNftClient('IPv4', thread.transactionChannel(NETLINK_NETFILTER));
  // As kernels before 6.17 answer.
  const sizes = client.sizes.bind(client);
  if (!withSizes) client.sizes = async () => new Map([...(await sizes())].map(([name]) => [name, undefined]));
  const cluster = new Cluster(VIEW, 'IPv4');
  const settings = { serviceCidrs: [cidr('10.96.0.0/16')] };
  const harness = new Harness({ client, cluster, settings });
  const lines = ['a/x 10.96.0.1 80@30080 affinity=60 lb=1.1.1.1 ranges=9.9.0.0/16,8.8.8.8/32',
    'a/x-1 of x 80 | 10.244.1.1 | 10.244.1.2 | 10.244.1.3'];
  for (let i = 0; i < 300; i++) {
    const address = '10.96.' + (1 + (i >> 8)) + '.' + (i & 255);
    lines.push('b/s' + i + ' ' + address + ' 80', 'b/s' + i + '-1 of s' + i + ' 80 | 10.244.2.' + (i & 255) + ' | 10.244.3.' + (i & 255));
  }
  await harness.sync(...lines);
  const list = () => inOneOrder(execFileSync('nft', ['list', 'table', 'ip', 'junction'], { encoding: 'utf8', maxBuffer: 1 << 26 }))
    .map((line) => line.replaceAll(/packets \\d+ bytes \\d+/g, '')).sort();
  for (const command of deed) execFileSync('nft', [command]);
  const looking = harness.verify();
  let changes = 0;
  let isDone = false;
  void looking.then(() => (isDone = true));
  while (!isDone) await harness.sync('b/s7-1 of s7 80 | 10.244.9.' + (++changes & 127));
  const { suspects } = await looking;
  const { kind, repaired } = await harness.sync('b/s7-1 of s7 80 | 10.244.9.1');
  const again = (await harness.verify()).suspects;
  const now = list();
  // The pool sizes that were needed once are there for a while.
  harness.wait(60_000);
  await harness.sync();
  const ours = list();
  await client.commit([{ kind: 'deleteTable' }]);
  await new Harness({ client, cluster, settings }).sync();
  const fresh = list();
  console.log(JSON.stringify({ suspects, kind, repaired, again, changes,
    lost: fresh.filter((line) => !ours.includes(line)), more: ours.filter((line) => !fresh.includes(line)) }));
  await thread.close();`;

let script = '';
beforeAll(async () => {
  script = await bundle('nftVerification', PROGRAM);
});
afterAll(() => rm(script));

interface Deed {
  readonly commands: readonly string[];
  readonly repaired: readonly string[];
  /** The changes that go on meanwhile write to it. */
  readonly isMetByChange?: true;
  /** It is deleted, and not worth a word: it does not affect our rules. */
  readonly isFound?: true;
}

const one = (repaired: string | readonly string[], ...commands: readonly string[]): Deed => ({
  commands,
  repaired: typeof repaired === 'string' ? [repaired] : repaired,
});

const POOL = '10.96.0.1 . tcp . 80 . 1';
const DEEDS: Readonly<Record<string, Deed>> = {
  nothing: one([]),
  'an element deleted': one('set any-3', `delete element ip junction any-3 { ${POOL} }`),
  'an element changed': one(
    'set any-3',
    `delete element ip junction any-3 { ${POOL} }`,
    `add element ip junction any-3 { ${POOL} comment "a/x" : 10.9.9.9 . 80 }`,
  ),
  'a comment changed': one(
    'set any-3',
    `delete element ip junction any-3 { ${POOL} }`,
    `add element ip junction any-3 { ${POOL} comment "theirs" : 10.244.1.2 . 80 }`,
  ),
  'an element added': one(
    'set any-2',
    'add element ip junction any-2 { 8.8.8.8 . tcp . 53 . 0 : 10.9.9.9 . 53 }',
  ),
  'an address added': one('set service-ips', 'add element ip junction service-ips { 8.8.8.8 }'),
  'an element of a protocol that no service has': {
    ...one([], 'add element ip junction any-2 { 8.8.8.8 . dccp . 53 . 0 : 10.9.9.9 . 53 }'),
    isFound: true,
  },
  'a source range deleted': one(
    'set allowed',
    'delete element ip junction allowed { 1.1.1.1 . tcp . 80 . 9.9.0.0/16 }',
  ),
  'a source range widened': one(
    'set allowed',
    'delete element ip junction allowed { 1.1.1.1 . tcp . 80 . 9.9.0.0/16 }',
    'add element ip junction allowed { 1.1.1.1 . tcp . 80 . 9.8.0.0/15 }',
  ),
  'a source range added': one(
    'set allowed',
    'add element ip junction allowed { 1.1.1.1 . tcp . 80 . 7.7.0.0/16 }',
  ),
  'the service CIDR changed': one(
    'set service-cidrs',
    'delete element ip junction service-cidrs { 10.96.0.0/16 }',
    'add element ip junction service-cidrs { 10.96.0.0/12 }',
  ),
  'a verdict deleted': one('set sticky-tcp', 'delete element ip junction sticky-tcp { 10.96.0.1 . 80 }'),
  'a set deleted, with its rules': one(
    ['chain services', 'set service-ips'],
    'flush chain ip junction services',
    'delete set ip junction service-ips',
  ),
  'a set emptied': { ...one('set any-2', 'flush map ip junction any-2'), isMetByChange: true },
  'a rule deleted': one('chain services', 'flush chain ip junction services'),
  'a rule added': one('chain services', 'add rule ip junction services tcp dport { 80, 443 } drop'),
  'a chain added': one('chain theirs', 'add chain ip junction theirs'),
  'a base chain that drops': one('chain prerouting', 'chain ip junction prerouting { policy drop; }'),
  'a table that sleeps': one('the table', 'add table ip junction { flags dormant; }'),
  'no table': { ...one('the table', 'delete table ip junction'), isMetByChange: true },
};

const CASES = Object.entries(DEEDS).flatMap(([name, deed]) =>
  [true, false].map((withSizes) => ({ name, withSizes, ...deed })),
);

test.for(CASES)('$name, the kernel says how large sets are: $withSizes', async (deed, context) => {
  requireNamespaces(context);
  requireNft(context);
  const namespace = await openNamespace();
  try {
    const argument = JSON.stringify([deed.commands, deed.withSizes]);
    const answer: unknown = JSON.parse(await output(namespace, process.execPath, script, argument));
    const { suspects, repaired, changes } = answer as {
      suspects: number;
      repaired: readonly string[];
      changes: number;
    };
    expect(answer).toMatchObject({ again: 0, lost: [], more: [] });
    expect(changes).toBeGreaterThan(0);
    // Where a change needs what is gone, it is refused, and everything is read before the look has ended.
    if (deed.isMetByChange && suspects === 0) return;
    expect([...repaired].sort()).toEqual([...deed.repaired].sort());
    expect(suspects > 0).toBe(deed.isFound ?? deed.repaired.length > 0);
  } finally {
    await namespace.close();
  }
});
