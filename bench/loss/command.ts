/** `npm run bench -- loss`: what a restart, a crash, a flush and a mode switch cost, in connections. */
import { fileURLToPath } from 'node:url';
import { runInGuest, whyNoGuest } from '../../lab/guest/machine.ts';
import { BadArgument, numberOption, option, progress, refuseUnknown } from '../arguments.ts';
import { LAB_MODES, type LossResult, nameOf, scenariosOf } from './messages.ts';
import { printLossReport, printRow } from './report.ts';
import { type LossRunOptions, runInLab } from './run.ts';

const GUEST_PROGRAM = fileURLToPath(new URL('bench-loss-guest.js', import.meta.url));
const JUNCTION = [process.execPath, fileURLToPath(new URL('junction.js', import.meta.url))];
const GUEST_TOOLS = ['unshare', 'nsenter', 'setpriv', 'ip', 'iptables-legacy', 'ip6tables-legacy', 'ipvsadm'];
const GUEST_MODULES = ['veth', 'bridge', 'br_netfilter', 'dummy', 'ip_vs', 'ip_vs_rr'];
const GUEST_MINUTES = 60;
/** Junction itself, and a kube-proxy beside it where there is one. */
const KUBE_PROXIES = [
  undefined,
  ...(process.env['KUBE_PROXY'] === undefined ? [] : [process.env['KUBE_PROXY']]),
];
const EVENTS = ['restart', 'kill', 'kills', 'flush'] as const;
/** That are told while it runs. */
const MOST_FAILURES = 5;

export async function lossCommand(args: readonly string[]): Promise<void> {
  refuseUnknown(args, ['--held', '--where', '--only', '--connections', '--services', '--older']);
  const only = option(args, '--only', '');
  const held = numberOption(args, '--held', 60);
  const connections = numberOption(args, '--connections', 5000);
  const services = numberOption(args, '--services', 500);
  const older = option(args, '--older', '');
  const where = option(args, '--where', 'both');
  if (!['both', 'lab', 'guest'].includes(where))
    throw new BadArgument(`--where ${where}: expected both, lab or guest`);
  if (where !== 'guest')
    process.stdout.write(
      `${printLossReport("On this machine's kernel:", await inLab({ held, connections, services, older }, only))}\n`,
    );
  if (where !== 'lab')
    process.stdout.write(
      printLossReport('In User-mode Linux, whose kernel has IPVS:', await inGuest(held, only)),
    );
}

interface LabOptions extends Pick<LossRunOptions, 'held' | 'connections' | 'services'> {
  /** The program of an older version. */
  readonly older: string;
}

async function inLab({ older, ...given }: LabOptions, only: string): Promise<readonly LossResult[]> {
  const results: LossResult[] = [];
  const options = {
    ...given,
    ...(older !== '' && { older: [process.execPath, older] }),
    dialers: 4,
    restMs: 8,
    patienceMs: 3000,
    beforeMs: 1000,
  };
  for (const scenario of scenariosOf(LAB_MODES, [
    ...EVENTS,
    ...(older === '' ? [] : (['upgrade'] as const)),
  ]).filter((each) => nameOf(each).includes(only))) {
    for (const kubeProxy of KUBE_PROXIES) {
      progress(`${nameOf(scenario)}${kubeProxy === undefined ? '' : ', kube-proxy'}`);
      const result = await runInLab({ program: JUNCTION, kubeProxy, ...options }, scenario);
      tell(result);
      results.push(result);
    }
  }
  progress('');
  return results;
}

async function inGuest(held: number, only: string): Promise<readonly LossResult[]> {
  const reason = whyNoGuest(GUEST_TOOLS);
  if (reason !== undefined) throw new Error(reason);
  progress('a kernel that has IPVS is booting');
  const results: LossResult[] = [];
  const { code, stderr } = await runInGuest(GUEST_PROGRAM, {
    timeoutMs: GUEST_MINUTES * 60_000,
    modules: GUEST_MODULES,
    arguments: [String(held), only, ...KUBE_PROXIES.flatMap((path) => path ?? [])],
    onLine: (line) => {
      const result = JSON.parse(line) as LossResult;
      results.push(result);
      tell(result);
    },
  });
  progress('');
  if (code !== 0) throw new Error(`the guest's program ended with ${code}\n${stderr}`);
  return results;
}

/** While it runs: a long run that is ended has told what it had. */
function tell(result: LossResult): void {
  progress(printRow(result).trim());
  for (const failure of result.failures.slice(0, MOST_FAILURES)) progress(`  ${failure}`);
}
