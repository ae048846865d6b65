/** `junction cleanup --dry-run` against a kernel in memory: what it says, and that it only says it. */
import { describe, expect, test } from 'vitest';
import { type CleanupCommandOptions, cleanupCommand, type NftCleanup } from '../../src/cli/cleanupCommand.ts';
import { EMPTY, FakeKernel } from '../modes/iptables/rules/fakeKernel.ts';
import { dataplaneOf } from '../../src/modes/dataplane.ts';
import { Cluster } from '../plan/cluster.ts';
import { FakeIptables } from '../scenarios/fakeIptables.ts';
import { NO_COUNTERS } from '../scenarios/iptablesProxier.ts';
import { rulesWriter } from '../scenarios/rulesNode.ts';
import { fakeRunner } from '../system/support/fakeRunner.ts';

const NO_TABLES: NftCleanup = { tables: [], failures: [], junctionIsRunning: false };

async function cleanup(
  kernel: FakeKernel,
  values: Partial<CleanupCommandOptions>,
  nftables: Partial<NftCleanup> = {},
  routesLocalnet = false,
): Promise<{ out: string; commands: readonly string[] }> {
  const { runner, commands } = fakeRunner((command) => {
    if (command.startsWith('cat ')) return { code: 1 };
    if (command.includes('legacy')) return 'missing';
    if (command.endsWith('--version')) return { stdout: 'iptables v1.8.9 (nf_tables)\n' };
    const table = /-save -t (\w+)/.exec(command)?.[1];
    if (table === undefined) throw new Error(`nobody should run ${command}`);
    return { stdout: tableOf(kernel, table) };
  });
  let out = '';
  const options = {
    dryRun: true,
    families: ['IPv4'],
    variant: 'auto',
    output: 'text',
    mode: 'all',
    ...values,
  } as const;
  const stdio = { out: (text: string) => (out += text), err: () => {}, painted: () => {} };
  const code = await cleanupCommand(stdio, options, {
    runner,
    routesLocalnet: () => routesLocalnet,
    cleanTables: async () => ({ ...NO_TABLES, ...nftables }),
  });
  expect(code).toBe(0);
  return { out, commands };
}

function tableOf({ text }: FakeKernel, table: string): string {
  return new RegExp(`^\\*${table}$[\\s\\S]*?^COMMIT$`, 'm').exec(text)?.[0] ?? '';
}

async function used(): Promise<FakeKernel> {
  const iptables = new FakeIptables();
  const cluster = new Cluster();
  cluster.tell('a/b 10.96.0.1 80', 'a/b-1 of b 80 | 10.244.0.1').replan();
  const dataplane = dataplaneOf(await rulesWriter('IPv4', 'current', iptables, NO_COUNTERS));
  await dataplane.rewrite(cluster.planner);
  const kernel = new FakeKernel(EMPTY);
  kernel.tables = new Map([...kernel.tables, ...iptables.tables]);
  return kernel;
}

describe('a dry run', () => {
  test('says what would go, and changes nothing', async () => {
    const kernel = await used();
    const before = kernel.text;
    const { out, commands } = await cleanup(kernel, {});
    expect(out.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['Would remove:'],
      ['FAMILY', 'VARIANT', 'TABLE', 'CHAINS', 'RULES ELSEWHERE'],
      ['IPv4', 'nft', 'filter', '6', '11'],
      ['IPv4', 'nft', 'nat', '6', '3'],
      [''],
    ]);
    expect(commands.filter((command) => command.includes('restore --') || command.includes(' -D '))).toEqual(
      [],
    );
    expect(kernel.text).toBe(before);
  });

  test('as JSON', async () => {
    const { out } = await cleanup(await used(), { output: 'json' });
    const parsed = JSON.parse(out) as {
      readonly dryRun: boolean;
      readonly removed: readonly { readonly chains: readonly unknown[] }[];
    };
    expect(parsed.dryRun).toBe(true);
    expect(parsed.removed[0]?.chains).toHaveLength(12);
  });

  test('where nothing is ours', async () => {
    expect((await cleanup(new FakeKernel(EMPTY), {})).out).toBe('Nothing of ours was there.\n');
  });

  test('tables of nftables', async () => {
    const tables = [{ family: 'ip', table: 'junction', objects: 37 }] as const;
    const { out } = await cleanup(new FakeKernel(EMPTY), {}, { tables });
    expect(out.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['Would remove of nftables:'],
      ['FAMILY', 'TABLE', 'SETS, MAPS AND CHAINS'],
      ['ip', 'junction', '37'],
      [''],
    ]);
  });

  test('what others use is named', async () => {
    const kernel = await used();
    kernel.tamper('nat', ':HOSTPORTS - [0:0]', '-A HOSTPORTS -j KUBE-MARK-MASQ');
    const { out } = await cleanup(kernel, {});
    expect(out).toContain('Kept KUBE-MARK-MASQ in nat (IPv4): rules that are not ours jump to it.');
  });
});

test('the guard that stays is named, with how to be rid of it', async () => {
  const { out } = await cleanup(await used(), {}, {}, true);
  expect(out).toContain('Kept KUBE-FIREWALL in filter (IPv4): route_localnet is on');
  expect(out).toContain('sysctl -w net.ipv4.conf.all.route_localnet=0');
});

describe('where there is no iptables', () => {
  test('the rest is cleaned, and it is said', async () => {
    const { runner } = fakeRunner((command) => (command.startsWith('cat ') ? { code: 1 } : 'missing'));
    let [out, err] = ['', ''];
    const code = await cleanupCommand(
      { out: (text) => (out += text), err: (text) => (err += text), painted: () => {} },
      { dryRun: true, families: ['IPv4'], variant: 'auto', output: 'text', mode: 'all' },
      {
        runner,
        cleanTables: async () => ({
          ...NO_TABLES,
          tables: [{ family: 'ip', table: 'junction', objects: 1 }],
        }),
      },
    );
    expect(code).toBe(0);
    expect(out).toMatch(/^Would remove of nftables:\n/);
    expect(err).toMatch(/^note: .*iptables.*, so there are no rules of it to remove \(IPv4\)\n$/);
  });
});

describe('what the kernel will not let go of', () => {
  test('is said, and ends badly', async () => {
    const { runner } = fakeRunner((command) => (command.startsWith('cat ') ? { code: 1 } : 'missing'));
    let out = '';
    const code = await cleanupCommand(
      { out: (text) => (out += text), err: () => {}, painted: () => {} },
      { dryRun: true, families: ['IPv4'], variant: 'auto', output: 'text', mode: 'all' },
      { runner, cleanTables: async () => ({ ...NO_TABLES, failures: ['table ip junction: EBUSY'] }) },
    );
    expect({ code, out }).toEqual({ code: 1, out: 'Could not remove table ip junction: EBUSY\n' });
  });
});

describe('of one mode', () => {
  /** What each of the others would have been asked for. */
  async function asked(
    mode: CleanupCommandOptions['mode'],
    running?: string,
    dryRun = true,
  ): Promise<readonly string[]> {
    const seen: string[] = [];
    const { runner, commands } = fakeRunner((command) =>
      command.startsWith('cat ') ? { code: 1 } : 'missing',
    );
    await cleanupCommand(
      { out: () => {}, err: () => {}, painted: () => {} },
      { dryRun, families: ['IPv4'], variant: 'auto', output: 'text', mode },
      {
        runner,
        runningMode: async () => running,
        cleanTables: async (_, __, names) => {
          seen.push(...(names ?? []));
          return NO_TABLES;
        },
      },
    );
    return [...seen, ...(commands.length > 0 ? ['iptables'] : [])];
  }

  test('nftables: our tables alone, never kube-proxy’s', async () => {
    expect(await asked('nftables')).toEqual(['junction', 'junction-backstop', 'junction-trial']);
  });

  test('all: kube-proxy’s table as well', async () => {
    expect(await asked('all')).toEqual([
      'junction',
      'junction-backstop',
      'junction-trial',
      'kube-proxy',
      'iptables',
    ]);
  });

  test.each(['iptables', 'ipvs'] as const)('%s: rules, and no table', async (mode) => {
    expect(await asked(mode, 'nftables')).toEqual(['iptables']);
  });

  test.each(['iptables', 'ipvs'] as const)('%s, while a proxy runs in it: nothing', async (mode) => {
    await expect(asked(mode, mode, false)).rejects.toThrow(`a service proxy runs here in the ${mode} mode`);
  });

  test('nftables, while kube-proxy runs in the same mode, with tables of its own', async () => {
    expect(await asked('nftables', 'nftables')).toContain('junction');
  });
});
