/** The same sets, servers, addresses and rules by the usual programs, into the namespace of this process. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { wholeRestore } from '../../src/modes/iptables/rules/whole.ts';
import { printDesiredState, desiredStateOf } from '../../src/modes/ipvs/print.ts';
import { ipvsLayout } from '../../src/modes/ipvs/rules/rules.ts';
import { run } from '../../src/system/processes.ts';
import { plannedCluster } from '../cluster.ts';
import { OPTIONS } from '../iptables.ts';
import type { Sizes, ToolsRun } from './messages.ts';

export async function measureTools(sizes: Sizes): Promise<ToolsRun> {
  const plan = plannedCluster(sizes);
  const { family, view } = plan;
  const ledger = desiredStateOf(plan, { family, scheduler: 'rr', nodeIps: [], nodePortIps: [] });
  const { ipset, ipvsadm, ip } = printDesiredState(ledger, family);
  const restore = wholeRestore(ipvsLayout, plan, {
    ...OPTIONS,
    dropInvalid: false,
    family,
    view,
    endpointComments: false,
  });
  return {
    kind: 'tools',
    sizes,
    ipset: await fed('ipset restore', ipset),
    ipvsadm: await fed('ipvsadm --restore', ipvsadm),
    restore: await fed('iptables-legacy-restore --noflush', restore),
    ip: await fed('ip -batch -', ip),
  };
}

/** From a file, so that nothing but the program is measured. */
async function fed(command: string, text: string): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'junction-bench-'));
  try {
    const input = join(folder, 'input');
    await writeFile(input, text);
    const started = performance.now();
    const { code, stderr } = await run(['sh', '-c', `exec ${command} < ${input}`]);
    const elapsed = performance.now() - started;
    if (code !== 0) throw new Error(`${command} ended with ${code}: ${stderr.slice(0, 500)}`);
    return elapsed;
  } finally {
    await rm(folder, { recursive: true });
  }
}
