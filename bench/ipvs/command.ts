/** `npm run bench -- ipvs`, in a kernel that has IPVS. */
import { fileURLToPath } from 'node:url';
import { runInGuest, whyNoGuest } from '../../lab/guest/machine.ts';
import { countsOption, numberOption, progress, refuseUnknown } from '../arguments.ts';
import type { Sizes } from '../cluster.ts';
import type { GuestRun } from './messages.ts';
import { printGuestReport } from './report.ts';

const PROGRAM = fileURLToPath(new URL('bench-ipvs-guest.js', import.meta.url));
const PROGRAMS = ['ipvsadm', 'ipset', 'ip', 'iptables-legacy-restore', 'unshare'];
const MODULES = ['ip_vs', 'ip_vs_rr', 'dummy'];
/** Of one repetition of everything; it takes one or two. */
const MINUTES_PER_REPETITION = 10;

export async function ipvsCommand(args: readonly string[]): Promise<void> {
  refuseUnknown(args, ['--sizes', '--endpoints', '--repetitions']);
  const endpoints = numberOption(args, '--endpoints', 3);
  const repetitions = numberOption(args, '--repetitions', 5);
  const counts = countsOption(args, '--sizes', '1000,10000');
  const sizes = counts.map((services): Sizes => ({ services, endpoints }));
  const runs = await inGuest(sizes, repetitions);
  progress('');
  process.stdout.write(printGuestReport(runs, sizes));
}

async function inGuest(sizes: readonly Sizes[], repetitions: number): Promise<readonly GuestRun[]> {
  const reason = whyNoGuest(PROGRAMS);
  if (reason !== undefined) throw new Error(reason);
  progress('a kernel that has IPVS is booting');
  const runs: GuestRun[] = [];
  const { code, stderr } = await runInGuest(PROGRAM, {
    timeoutMs: (repetitions + 1) * MINUTES_PER_REPETITION * 60_000,
    modules: MODULES,
    arguments: [
      'all',
      String(repetitions),
      String(sizes[0]?.endpoints),
      ...sizes.map(({ services }) => String(services)),
    ],
    onLine: (line) => {
      runs.push(JSON.parse(line) as GuestRun);
      progress(`measurement ${runs.length} of ${repetitions * sizes.length * 2}`);
    },
  });
  if (code !== 0) throw new Error(`the guest's program ended with ${code}\n${stderr}`);
  return runs;
}
