/** What `doctor` says of a node on which several things are wrong: one that exists in memory. */
import { printDoctor } from '../../src/cli/doctorOutput.ts';
import { parseCommandLine } from '../../src/config/commandLine.ts';
import type { ValidConfig } from '../../src/config/effective.ts';
import { loadConfig } from '../../src/config/load.ts';
import { FLAGS } from '../../src/config/table.ts';
import { isValid } from '../../src/config/validate.ts';
import { doctor } from '../../src/doctor/doctor.ts';
import type { RouteLook } from '../../src/doctor/machine.ts';
import type { Status } from '../../src/explain/status.ts';
import { fakeMachine as doctorFake } from '../../test/doctor/fakeMachine.ts';
import { fakeMachine } from '../../test/modes/prerequisites/fakeMachine.ts';
import { FULL_STATUS } from '../../test/support/fullStatus.ts';
import { examplesSubject } from './answers.ts';

const COLUMNS = 110;
const ROUTE: RouteLook = { state: 'found', outLink: 2, gateway: undefined, isLocal: false };
const DROPPED = 'entries found insert_failed drop early_drop\n0003ffff 00000000 00000000 000004b4 00000000\n';

export async function doctorSample(root: string): Promise<string> {
  const machine = doctorFake({
    sysctls: {
      'net/ipv4/ip_forward': '0',
      'net/ipv4/conf/all/rp_filter': '2',
      'net/bridge/bridge-nf-call-iptables': '1',
      'net/netfilter/nf_conntrack_count': '262143',
      'net/netfilter/nf_conntrack_max': '262144',
    },
    files: { 'net/stat/nf_conntrack': DROPPED },
    processes: { 'kube-proxy': ['pid 912 (kube-proxy --config=/var/lib/kube-proxy/config.conf)'] },
    routes: { '10.244.1.11': ROUTE, '10.244.1.12': ROUTE },
  });
  const report = await doctor({
    config: configOf(
      '--proxy-mode=nftables',
      '--conntrack-max-per-core=0',
      '--conntrack-tcp-timeout-established=0',
    ),
    nodeName: 'node1',
    families: ['IPv4'],
    proxy: { socket: '/run/junction/junction.sock', status: wellStatus() },
    subject: await examplesSubject('nftables', root),
    machines: { doctor: machine, checks: fakeMachine() },
  });
  const text = printDoctor(report, (_, part) => part, { columns: COLUMNS });
  return `$ junction doctor\n${text}$ echo $?\n${report.hasProblems ? 1 : 0}\n`;
}

function configOf(...flags: readonly string[]): ValidConfig {
  const parsed = parseCommandLine(flags, FLAGS);
  const loaded = parsed.ok ? loadConfig(parsed.value, () => '') : parsed;
  if (!loaded.ok || !isValid(loaded.value.config)) throw new Error('not a configuration');
  return loaded.value.config;
}

/** One that syncs, and whose API server is away. */
function wellStatus(): Status {
  const { now, families, source } = FULL_STATUS;
  const well = families.map((family) => ({
    ...family,
    refused: [],
    foreignChanges: { count: 0, byProgram: {} },
  }));
  const failing = { failingSince: new Date(now - 480_000).toISOString(), reason: 'connect ECONNREFUSED' };
  return {
    ...FULL_STATUS,
    families: well.slice(0, 1),
    leftOut: [],
    findings: [],
    source:
      source.kind === 'api'
        ? { ...source, resources: [{ resource: 'endpointslices', hasListed: true, ...failing }] }
        : source,
  };
}
