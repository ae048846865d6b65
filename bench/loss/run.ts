/** Runs a scenario on a node on which nobody has written anything. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Lab } from '../../lab/lab.ts';
import { kindOf, type LossMode, type LossResult, type LossScenario } from './messages.ts';
import { LossNode } from './node.ts';
import { LossTraffic, type TrafficOptions } from './traffic.ts';

export interface LossRunOptions extends TrafficOptions {
  readonly lab: Lab;
  /** Junction's. */
  readonly program: readonly string[];
  /** An older version of it. */
  readonly older?: readonly string[] | undefined;
  /** How many services there are besides those of the traffic. */
  readonly services: number;
  /** The path of a kube-proxy that is measured in its place. */
  readonly kubeProxy?: string | undefined;
  /** Traffic goes on for so long before the event. */
  readonly beforeMs: number;
  /** After the event it goes on until everything answers, and until so many connections were opened in all. */
  readonly connections: number;
}

/** A flush is noticed by a look every half minute, or never. */
const RECOVERY_LIMIT_MS = 90_000;

/**
 * In a cluster of its own. For two minutes the kernel remembers that a connection that was begun while rules were gone is
 * not translated; another one from the same port, in the next scenario, would be lost like it.
 */
export async function runInLab(
  options: Omit<LossRunOptions, 'lab'>,
  scenario: LossScenario,
): Promise<LossResult> {
  const lab = await Lab.start();
  try {
    return await runScenario({ ...options, lab }, scenario);
  } finally {
    await lab.close();
  }
}

async function runScenario(options: LossRunOptions, scenario: LossScenario): Promise<LossResult> {
  const { lab, program, older, services, kubeProxy } = options;
  const node = await LossNode.create(lab.host('node1'), { program, services, kubeProxy });
  try {
    await node.start(scenario.mode, scenario.event === 'upgrade' ? older : program);
    const traffic = new LossTraffic(lab, options);
    if (!(await isAnswered(traffic, RECOVERY_LIMIT_MS))) throw new Error('services do not answer');
    await traffic.start();
    await sleep(options.beforeMs);
    await perform(node, scenario);
    const recovered = await isAnswered(traffic, RECOVERY_LIMIT_MS);
    await traffic.opened(options.connections);
    return {
      scenario,
      proxy: kubeProxy === undefined ? 'Junction' : 'kube-proxy',
      recovered,
      ...(await traffic.stop()),
    };
  } finally {
    await node.clear();
  }
}

async function perform(node: LossNode, { event, mode, to = mode }: LossScenario): Promise<void> {
  if (event === 'flush') return flush(node, mode);
  if (event === 'kills') await killRepeatedly(node, mode);
  await node.end(event === 'kill' ? 'SIGKILL' : 'SIGTERM');
  await node.start(to);
}

const KILLS = 20;

/** While it reads its configuration, while it writes, and soon after. */
async function killRepeatedly(node: LossNode, mode: LossMode): Promise<void> {
  const began = performance.now();
  await node.end('SIGKILL');
  await node.start(mode);
  const startMs = performance.now() - began;
  for (let kill = 0; kill < KILLS; kill++) {
    await node.end('SIGKILL');
    node.launch(mode);
    await sleep(Math.random() * 1.2 * startMs);
  }
}

/** As a firewall does that starts, or an operator who wants a clean slate. */
async function flush(node: LossNode, mode: LossMode): Promise<void> {
  if (kindOf(mode) === 'nftables') {
    await node.host.run(['nft', 'flush', 'ruleset']);
    return;
  }
  if (mode === 'ipvs') await node.host.run(['ipvsadm', '-C']);
  const variant = mode === 'iptables-nft' ? 'nft' : 'legacy';
  for (const program of [`iptables-${variant}`, `ip6tables-${variant}`])
    for (const table of ['nat', 'filter', 'mangle'])
      for (const word of ['-F', '-X']) await node.host.run([program, '-t', table, word]);
}

async function isAnswered(traffic: LossTraffic, limitMs: number): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  while (!(await traffic.answers())) {
    if (performance.now() > deadline) return false;
    await sleep(100);
  }
  return true;
}
