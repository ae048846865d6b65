/** A machine as a table: what a test does not say is not there. */
import type { DoctorLink, DoctorMachine, NftBaseChain, RouteLook } from '../../src/doctor/machine.ts';
import { GroupFindings } from '../../src/doctor/group.ts';
import type { StaleTable } from '../../src/modes/nftables/cleanup.ts';
import type { DoctorGroup } from '../../src/explain/doctorReport.ts';

export interface FakeMachine {
  readonly sysctls?: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string>>;
  readonly links?: readonly DoctorLink[];
  readonly chains?: readonly NftBaseChain[];
  readonly processes?: Readonly<Record<string, readonly string[]>>;
  /** By `destination`, or `destination from source iif number`. */
  readonly routes?: Readonly<Record<string, RouteLook>>;
  readonly tables?: readonly StaleTable[];
  /** Chains of an iptables or ipvs mode, IPv4. */
  readonly staleChains?: number;
  /** What a program prints, by its whole command line; others fail. */
  readonly programs?: Readonly<Record<string, string>>;
}

export function fakeMachine(fake: FakeMachine): DoctorMachine {
  return {
    kernelRelease: '6.1.0',
    cpus: 2,
    run: (argv) => {
      const stdout = fake.programs?.[argv.join(' ')];
      return Promise.resolve({
        code: stdout === undefined ? 1 : 0,
        signal: null,
        stdout: stdout ?? '',
        stderr: '',
      });
    },
    sysctl: (name) => fake.sysctls?.[name],
    procFile: (path) => fake.files?.[path],
    processesNamed: (name) => fake.processes?.[name] ?? [],
    links: () => Promise.resolve(fake.links ?? []),
    nftBaseChains: () => Promise.resolve(fake.chains ?? []),
    tables: (names) => Promise.resolve((fake.tables ?? []).filter(({ table }) => names.includes(table))),
    staleRules: (family) =>
      Promise.resolve({ chains: family === 'IPv4' ? (fake.staleChains ?? 0) : 0, rules: 0 }),
    route: (to, arrival) => {
      const key = arrival ? `${to} from ${arrival.source} iif ${arrival.inLink}` : to;
      return Promise.resolve(fake.routes?.[key] ?? { state: 'refused', errno: 'ENETUNREACH' });
    },
    hasIpv6: () => true,
    savedRulesets: () => [],
  };
}

export async function groupOf(check: (group: GroupFindings) => Promise<void> | void): Promise<DoctorGroup> {
  const group = new GroupFindings();
  await check(group);
  return group.toGroup('kernel');
}

/** `error rp-filter-drops` */
export function codesOf({ findings }: DoctorGroup): readonly string[] {
  return findings.map(({ severity, code }) => `${severity} ${code}`);
}
