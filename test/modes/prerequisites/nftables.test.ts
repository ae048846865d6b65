/** Everything that nftables mode needs, taken away one by one from a machine that is made up. */
import { describe, expect, test } from 'vitest';
import { type Check, readinessOf } from '../../../src/modes/prerequisites/check.ts';
import { abilitiesOf, NFT_PIECES } from '../../../src/modes/nftables/prerequisites.ts';
import { type TrialTable, trialTable } from '../../../src/modes/nftables/trialTable.ts';
import { checkMode } from '../../../src/modes/prerequisites.ts';
import type { KernelPiece } from '../../../src/modes/prerequisites/pieces.ts';
import { FAMILIES, type Family } from '../../../src/model/ip.ts';
import { fakeMachine, type Lacks } from './fakeMachine.ts';

const SETTINGS = { layout: 'current', localhostNodePorts: false, scheduler: 'rr', strictArp: false } as const;

function check(lacks: Lacks, families: readonly Family[] = FAMILIES): Promise<readonly Check[]> {
  return checkMode('nftables', SETTINGS, families, fakeMachine(lacks));
}

function troubles(checks: readonly Check[]): readonly string[] {
  return checks.filter(({ state }) => state !== 'present').map(({ state, subject }) => `${state} ${subject}`);
}

const inBoth = (state: string, what: string): readonly string[] =>
  FAMILIES.map((family) => `${state} nftables: ${what}, ${family}`);

const CASES: readonly (readonly [string, Lacks, readonly string[]])[] = [
  ['nothing', {}, []],
  ['NET_ADMIN', { capabilities: '0' }, ['missing capability NET_ADMIN']],
  ['nf_tables', { modules: ['nf_tables'] }, FAMILIES.map((family) => `missing nftables, ${family}`)],
  ['nat chains', { modules: ['nft_chain_nat'] }, FAMILIES.map((family) => `missing nftables, ${family}`)],
  ['IPv6', { ipv6: false }, ['degraded IPv6']],
  ['sets of several fields', { nftables: { lacks: ['several fields'] } }, everyMap('missing')],
  [
    'ranges',
    { nftables: { lacks: ['several ranges'] } },
    inBoth('missing', 'sets of several fields with ranges'),
  ],
  ['nft_nat', { modules: ['nft_nat'] }, FAMILIES.flatMap((family) => natTroubles(family))],
  ['nft_numgen', { modules: ['nft_numgen'] }, inBoth('missing', 'drawing an endpoint at random')],
  [
    'nft_fib_ipv4',
    { modules: ['nft_fib_ipv4'] },
    ['missing nftables: asking whether an address is local, IPv4'],
  ],
  [
    'nft_fib_ipv6',
    { modules: ['nft_fib_ipv6'] },
    ['missing nftables: asking whether an address is local, IPv6'],
  ],
  [
    'nft_reject_ipv4',
    { modules: ['nft_reject_ipv4'] },
    ['missing nftables: refusing a connection before it is routed, IPv4'],
  ],
  [
    'Linux 5.9',
    { nftables: { lacks: ['reject before routing'] } },
    inBoth('missing', 'refusing a connection before it is routed'),
  ],
  [
    'nft_ct',
    { modules: ['nft_ct'] },
    FAMILIES.flatMap((family) => [
      `missing nftables: asking connection tracking, ${family}`,
      `degraded nftables: affinity entries, ${family}`,
    ]),
  ],
  ['nft_masq', { modules: ['nft_masq'] }, inBoth('missing', 'masquerading with random ports')],
  [
    'maps that rules fill',
    { nftables: { lacks: ['update with data'] } },
    inBoth('degraded', 'affinity entries'),
  ],
  ['counters', { nftables: { lacks: ['counters'] } }, inBoth('degraded', 'counters of elements')],
  [
    'Linux 5.12',
    { nftables: { lacks: ['owners'] } },
    inBoth('degraded', 'tables that nobody else can change'),
  ],
  [
    'room for all of it',
    { nftablesOf: { IPv6: { mostSets: 20 } } },
    ['missing nftables: all of it in one table, IPv6'],
  ],
  [
    'the table of flows',
    { modules: ['nf_conntrack_netlink'] },
    ['degraded kernel module nf_conntrack_netlink'],
  ],
  ['iptables', { programs: ['iptables', 'ip6tables'] }, []],
  ['nft', { programs: ['nft'] }, []],
  ['an nft that is newer than 0.9.8', { nftVersion: 'nftables v0.9.8 (E.D.S.)\n' }, ['degraded program nft']],
  [
    'an nft that is newer than 1.0.0',
    { nftVersion: 'nftables v1.0.0 (Fearless Fosdick #2)\n' },
    ['degraded program nft'],
  ],
];

/** Every part that has a set of several fields. */
function everyMap(state: 'missing'): readonly string[] {
  return FAMILIES.flatMap((family) =>
    piecesWith(family, ({ sets }) => sets.some(({ key }) => key.length > 1)).map(
      ({ name, needed }) => `${needed === 'always' ? state : 'degraded'} nftables: ${name}, ${family}`,
    ),
  );
}

function piecesWith(family: Family, has: (table: TrialTable) => boolean): readonly KernelPiece[] {
  return NFT_PIECES.filter(({ name }) => has(trialTable(family, [name])));
}

function natTroubles(family: Family): readonly string[] {
  return piecesWith(family, ({ chains }) =>
    chains.some(({ rules }) =>
      rules.some(({ statements }) => statements.some(({ kind }) => kind === 'dnatByMap')),
    ),
  ).map(({ name, needed }) => `${needed === 'always' ? 'missing' : 'degraded'} nftables: ${name}, ${family}`);
}

describe('a machine that lacks', () => {
  test.each(CASES)('%s', async (_, lacks, expected) => {
    const checks = await check(lacks);
    expect(troubles(checks)).toEqual(expected);
    expect(readinessOf(checks)).toBe(expected.some((text) => text.startsWith('missing')) ? 'no' : 'yes');
    for (const { state, remedy } of checks) expect(remedy === '').toBe(state === 'present');
  });
});

describe('what is said', () => {
  const find = async (lacks: Lacks, subject: string): Promise<Check | undefined> =>
    (await check(lacks)).find((each) => each.subject === subject);

  test('the module that brings it, and since when kernels have it', async () => {
    expect(
      await find({ modules: ['nft_fib_ipv4'] }, 'nftables: asking whether an address is local, IPv4'),
    ).toEqual({
      subject: 'nftables: asking whether an address is local, IPv4',
      state: 'missing',
      needed: 'always',
      found: 'the kernel refuses it (ENOENT); modprobe: FATAL: Module nft_fib_ipv4 not found',
      remedy: expect.stringMatching(
        /^It came with Linux 4\.10; this is 6\.1\.0-18-amd64\. Kernel modules nft_fib_ipv4, nft_fib\. modprobe -a nft_fib_ipv4 nft_fib\. If it is not found, linux-modules-extra-/,
      ),
    });
  });

  test('a kernel without nftables is told once for each family', async () => {
    expect(await find({ modules: ['nf_tables'] }, 'nftables, IPv4')).toMatchObject({
      found: expect.stringMatching(/^no tables of this family: the kernel refuses it \(ENOTSUP\)/),
      remedy: expect.stringMatching(/modprobe nf_tables.* CONFIG_NF_TABLES, CONFIG_NF_TABLES_IPV4,/),
    });
  });

  test('what is taken and forgotten', async () => {
    expect(
      await find({ nftables: { lacks: ['counters'] } }, 'nftables: counters of elements, IPv4'),
    ).toMatchObject({
      state: 'degraded',
      needed: 'for metrics that count connections by service and endpoint',
      found: 'the kernel takes it, and knows nothing of it afterwards',
    });
  });

  test('the version of nft, where there is one', async () => {
    expect(await find({}, 'program nft')).toMatchObject({ state: 'present', found: 'version 1.0.6' });
    expect(await find({ programs: ['nft'] }, 'program nft')).toBeUndefined();
  });
});

describe('trials', () => {
  test('one for each family where nothing is wrong', async () => {
    const machine = fakeMachine();
    await checkMode('nftables', SETTINGS, FAMILIES, machine);
    expect(machine.trials).toEqual([
      'table of IPv4',
      'owned table of IPv4',
      'table of IPv6',
      'owned table of IPv6',
    ]);
    expect(machine.clients).toEqual([]);
  });

  test('a module that nobody had loaded is loaded', async () => {
    expect(troubles(await check({ unloaded: ['nf_tables', 'nft_masq'] }))).toEqual([]);
  });

  test('one family alone', async () => {
    const machine = fakeMachine();
    await checkMode('nftables', SETTINGS, ['IPv6'], machine);
    expect(machine.trials).toEqual(['table of IPv6', 'owned table of IPv6']);
  });
});

describe('a kernel that is busy with somebody else', () => {
  const ipv4 = ['IPv4'] as const;

  test.each(['EINTR', 'EAGAIN', 'EBUSY', 'ENOBUFS', 'netlink: cannot list the sets of our table: EINTR'])(
    '%s: the same is tried again, and no module is loaded for it',
    async (reason) => {
      const machine = fakeMachine({ nftables: { interruptions: [reason, reason, reason] } });
      expect(troubles(await checkMode('nftables', SETTINGS, ipv4, machine))).toEqual([]);
      expect(machine.trials).toEqual([
        ...Array.from({ length: 4 }, () => 'table of IPv4'),
        'owned table of IPv4',
      ]);
    },
  );

  test('for ever: it is said, in the kernel’s word', async () => {
    const interruptions = Array.from({ length: 100 }, () => 'EBUSY');
    const checks = await check({ nftables: { interruptions } }, ipv4);
    expect(troubles(checks)).toEqual(['unknown nftables, IPv4']);
    expect(abilitiesOf(checks, ipv4).families).toEqual(ipv4);
    expect(checks.find(({ state }) => state === 'unknown')?.found).toBe(
      'no tables of this family: the kernel refuses it (EBUSY)',
    );
  });

  test('what it refuses for good is not tried again, but for the module that may be missing', async () => {
    const machine = fakeMachine({ modules: ['nf_tables'] });
    await checkMode('nftables', SETTINGS, ipv4, machine);
    expect(machine.trials).toEqual(['table of IPv4', 'table of IPv4', 'modprobe nf_tables', 'table of IPv4']);
  });
});

describe('what the mode can do', () => {
  const abilities = async (lacks: Lacks): Promise<unknown> => abilitiesOf(await check(lacks), FAMILIES);

  test('all of it', async () => {
    expect(await abilities({})).toEqual({ families: FAMILIES, counters: true });
  });

  test('nothing is counted where the kernel cannot', async () => {
    expect(await abilities({ nftables: { lacks: ['counters'] } })).toEqual({
      families: FAMILIES,
      counters: false,
    });
    expect(await abilities({ nftablesOf: { IPv6: { lacks: ['counters'] } } })).toMatchObject({
      counters: false,
    });
  });
});
