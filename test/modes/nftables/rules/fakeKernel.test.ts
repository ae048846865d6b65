/** That the kernel in memory refuses what the real one does, by the same names. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { inside } from '../../../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../../system/support/namespace.ts';
import { FakeNftKernel } from './fakeKernel.ts';
import { KERNEL_CASES } from './kernelCases.ts';

test.each(KERNEL_CASES)('in memory: $name', async ({ transactions, outcome }) => {
  const kernel = new FakeNftKernel();
  const table = kernel.table('table');
  for (const transaction of transactions.slice(0, -1))
    expect(await table.commit(transaction)).toEqual({ state: 'done' });
  const before = kernel.tables.get('table');
  const last = await table.commit(transactions.at(-1) ?? []);
  expect(last.state === 'refused' ? last.name : last.state).toBe(outcome);
  if (last.state === 'refused') expect(kernel.tables.get('table')).toBe(before);
});

test('an element whose key lacks a field is refused', async () => {
  const table = new FakeNftKernel().table('table');
  const set = { name: 'drawn', key: ['port', { drawnOf: 2 }] } as const;
  await table.commit([{ kind: 'addTable' }, { kind: 'addSet', set }]);
  const elements = [{ set: 'drawn', key: { port: 80 } }];
  expect(await table.commit([{ kind: 'addElements', set, elements }])).toMatchObject({ name: 'EINVAL' });
});

describe('in a namespace', () => {
  let namespace: Namespace;
  beforeEach(async (context) => {
    requireNamespaces(context);
    namespace = await openNamespace();
  });
  afterEach(() => namespace.close());

  test('the real kernel says the same to every transaction', async () => {
    const outcomes = await inside(
      namespace,
      'nftCases',
      `
      import { directChannel } from './test/netlink/support/directChannel.ts';
      import { NETLINK_NETFILTER, NetlinkSocket } from './src/netlink/socket.ts';
      import { NetlinkNftTables } from './src/modes/nftables/client.ts';
      import { KERNEL_CASES } from './test/modes/nftables/rules/kernelCases.ts';
      const client = new NetlinkNftTables('IPv4', directChannel(NetlinkSocket.open(NETLINK_NETFILTER))).table('trial');
      const word = (outcome) => (outcome.state === 'refused' ? outcome.name : outcome.state);
      const outcomes = {};
      for (const { name, transactions } of KERNEL_CASES) {
        const words = [];
        for (const transaction of transactions) words.push(word(await client.commit(transaction)));
        const early = words.slice(0, -1).filter((each) => each !== 'done');
        outcomes[name] = early.length > 0 ? early.join() + ' too early' : words.at(-1);
        await client.commit([{ kind: 'deleteTable' }]);
      }
      console.log(JSON.stringify(outcomes));`,
    );
    expect(outcomes).toEqual(
      Object.fromEntries(KERNEL_CASES.map(({ name, outcome, really }) => [name, really ?? outcome])),
    );
  });
});
