/** `junction cleanup` of a kernel in memory, where it is one: of what an iptables mode wrote there, and of tables that are told. */
import { cleanupCommand } from '../../src/cli/cleanupCommand.ts';
import { dataplaneOf } from '../../src/modes/dataplane.ts';
import { IptablesSide } from '../contract/memoryIptables.ts';
import { NO_COUNTERS } from '../contract/modes.ts';
import { Cluster } from '../plan/cluster.ts';
import { FakeIptables } from '../scenarios/fakeIptables.ts';
import { fakeRunner } from '../system/support/fakeRunner.ts';
import { captured, type Run } from './junction.ts';

type Options = Parameters<typeof cleanupCommand>[1];
type Machine = NonNullable<Parameters<typeof cleanupCommand>[2]>;
type Tables = Awaited<ReturnType<NonNullable<Machine['cleanTables']>>>;

const DRY: Options = { dryRun: true, families: ['IPv4'], variant: 'auto', output: 'text', mode: 'all' };
const NO_TABLES: Tables = { tables: [], failures: [], junctionIsRunning: false };

export interface Cleaned extends Run {
  /** Every command that was run. */
  readonly commands: readonly string[];
  /** Names of the nftables tables that were asked for. */
  readonly names: readonly string[];
}

/** Without a kernel, no iptables is installed. */
export async function cleaned(
  kernel: FakeIptables | undefined,
  options: Partial<Options> = {},
  { tables, ...machine }: Machine & { readonly tables?: Partial<Tables> } = {},
): Promise<Cleaned> {
  const { runner, commands } = fakeRunner((command) => {
    if (command.startsWith('cat ')) return { code: 1 };
    if (!kernel || command.includes('legacy')) return 'missing';
    if (command.endsWith('--version')) return { stdout: 'iptables v1.8.9 (nf_tables)\n' };
    const table = /-save -t (\w+)/.exec(command)?.[1];
    if (table === undefined) throw new Error(`nobody should run ${command}`);
    return { stdout: kernel.save(table) };
  });
  const names: string[] = [];
  const cleanTables: Machine['cleanTables'] = (_, __, asked) => {
    names.push(...asked);
    return Promise.resolve({ ...NO_TABLES, ...tables });
  };
  const faked = { runner, cleanTables, routesLocalnet: () => false, ...machine };
  const run = await captured((output) => cleanupCommand(output, { ...DRY, ...options }, faked));
  return { ...run, commands, names };
}

/** In which an iptables mode has served something. */
export async function writtenKernel(): Promise<FakeIptables> {
  const iptables = new FakeIptables();
  const cluster = new Cluster();
  cluster.tell('a/b 10.96.0.1 80', 'a/b-1 of b 80 | 10.244.0.1').replan();
  const dataplane = dataplaneOf(await new IptablesSide('IPv4', 'current', iptables, NO_COUNTERS).start());
  await dataplane.rewrite(cluster.planner);
  return iptables;
}
