/** The same steps by `iptables-nft-restore` and by netlink, and what the kernel then has. Runs inside a namespace. */
import { isJunctionError } from '../../../../../src/errors.ts';
import type { Family } from '../../../../../src/model/ip.ts';
import { NetlinkWriter } from '../../../../../src/modes/iptables/netlink/writer.ts';
import { printStep, type Step } from '../../../../../src/modes/iptables/rules/edit.ts';
import { directChannel } from '../../../../../src/netlink/channel.ts';
import { NETLINK_NETFILTER, NetlinkSocket } from '../../../../../src/netlink/socket.ts';
import { PROGRAM, restore, runInside } from './kernelRules.ts';

interface Snapshot {
  /** Of each step, whether it was refused. */
  readonly refused: readonly boolean[];
  readonly save: readonly string[];
  readonly list: string;
  readonly ruleset: readonly string[];
}

type SendStep = (step: Step) => Promise<void>;

/** Refused steps are left out. */
async function send(family: Family, steps: readonly Step[], sendStep: SendStep): Promise<Snapshot> {
  runInside(['nft', 'flush', 'ruleset']);
  const refused: boolean[] = [];
  for (const step of steps) refused.push(!(await isTaken(step, sendStep)));
  return { refused, ...kernelNow(family) };
}

async function isTaken(step: Step, sendStep: SendStep): Promise<boolean> {
  try {
    await sendStep(step);
    return true;
  } catch (error) {
    if (isJunctionError(error, 'IPTABLES_RESTORE_FAILED')) return false;
    if (error instanceof Error && error.message.includes('-restore')) return false;
    throw error;
  }
}

function kernelNow(family: Family): Omit<Snapshot, 'refused'> {
  const program = PROGRAM[family];
  // Chains in the order of their names: iptables-restore creates them in the order of a hash.
  return {
    save: sorted(runInside([`${program}-save`, '-c'])),
    list: ['filter', 'nat', 'mangle'].map((table) => listed(program, table)).join(''),
    ruleset: chainsOf(runInside(['nft', 'list', 'ruleset'])),
  };
}

function listed(program: string, table: string): string {
  return sorted(runInside([program, '-t', table, '-S'])).join('\n');
}

function sorted(text: string): readonly string[] {
  return text
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .map((line, index) => [chainOf(line), index, line] as const)
    .sort(([a, first], [b, second]) => (a < b ? -1 : a > b ? 1 : first - second))
    .map(([, , line]) => line);
}

/** Each chain with its table, in one text. */
function chainsOf(ruleset: string): readonly string[] {
  return ruleset
    .split(/^(?=table )/m)
    .flatMap((table) => {
      const [head = '', ...chains] = table.split(/^(?=\tchain )/m);
      return chains.map((chain) => `${head}${chain}`.replaceAll(/^(?:\}|\s*)\n/gm, ''));
    })
    .sort();
}

/** Rules keep their order within a chain. */
function chainOf(line: string): string {
  return /(?:^:|^-[NP] |-A )(\S+)/.exec(line)?.[1] ?? '';
}

export async function bothWriters(
  family: Family,
  steps: readonly Step[],
): Promise<{ readonly restored: Snapshot; readonly sent: Snapshot }> {
  const restored = await send(family, steps, async (step) => restore(family, printStep(step)));
  const socket = NetlinkSocket.open(NETLINK_NETFILTER);
  try {
    const writer = new NetlinkWriter(family, directChannel(socket));
    const sent = await send(family, steps, async (step) => {
      if ((await writer.commit(step)) === undefined) throw new Error(`not encoded: ${printStep(step)}`);
    });
    return { restored, sent };
  } finally {
    socket.close();
  }
}
