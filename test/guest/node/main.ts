/**
 * Junction on node1, as a process in that node's network: what speaks netlink, or writes below /proc/sys/net, does it to
 * the network that its process is in. Its parent is the program in guest.
 */
import { inspect } from 'node:util';
import { FAMILIES, type Family } from '../../../src/model/ip.ts';
import type { KernelReader } from '../../../src/modes/kernelRules.ts';
import { expectedIn } from '../../scenarios/expectations.ts';
import { decide, type Host, type Packet } from '../../../src/plan/decide.ts';
import type { Plan } from '../../../src/plan/types.ts';
import { NODE1 } from '../../scenarios/scenario.ts';
import { ContractNode } from '../../contract/node.ts';
import { RealSide } from '../../contract/realSide.ts';
import { ScenarioProxies } from '../../scenarios/scenarioProxies.ts';
import { type GuestMode, GUEST_MODES } from './proxiers.ts';
import type { FromNode, NodeCall, NodeOperationName, NodeOperations } from './protocol.ts';

type Handlers = {
  readonly [Name in NodeOperationName]: (
    input: NodeOperations[Name]['input'],
  ) => Promise<NodeOperations[Name]['output']>;
};

const { mechanism, open } = GUEST_MODES[process.argv.at(-1) as GuestMode];
const proxies = new ScenarioProxies(await open());
let contract: ContractNode | undefined;

const handlers: Handlers = {
  apply: async (scenario) => {
    const { settings } = scenario;
    // Only iptables can serve node ports on 127.0.0.1, and the configuration sees to that.
    const localhostNodePorts = settings.localhostNodePorts && mechanism === 'current';
    await proxies.apply({ ...scenario, settings: { ...settings, localhostNodePorts } });
    return scenario.rows.map((row) => {
      const plan = proxies.plan(row.family);
      if (mechanism !== 'current' && dialsItselfFromElsewhere(plan, row.packet, NODE1)) return undefined;
      return expectedIn(mechanism, plan, row);
    });
  },
  walk: async (packets) => {
    for (const family of FAMILIES) proxies.writer(family).beforeQuestions?.();
    return Promise.all(
      packets.map(({ family, packet }) => {
        const { nodeIp } = proxies.plan(family).view;
        return readerOf(family).walk(packet, { ...NODE1, nodeIp });
      }),
    );
  },
  compare: (family) => readerOf(family).compare(proxies.plan(family)),
  counters: async (family) => (await proxies.writer(family).counters?.()) ?? new Map<string, number>(),
  resync: async () => {
    await proxies.resync();
    return null;
  },
  contract: async ([method, argument]) => {
    if (method === 'open') {
      const writer = proxies.writer(argument as Family);
      const begin = (): ContractNode => new ContractNode(new RealSide(mechanism, writer), writer.family);
      // What the case before left.
      await begin().rewrite();
      contract = begin();
      return null;
    }
    if (!contract) throw new Error('no case was begun');
    const call = contract[method].bind(contract) as (value: unknown) => unknown;
    return (await call(argument)) ?? null;
  },
};

/**
 * An endpoint of another node that dials itself through this one, which no cluster does: its own node's proxy serves it.
 * One in so many of its connections is lost, so there is nothing to expect.
 */
function dialsItselfFromElsewhere(plan: Plan, packet: Packet, host: Host): boolean {
  const decision = decide(plan, packet, host);
  if (decision.verdict !== 'forward') return false;
  return decision.targets.some(({ endpoint }) => endpoint.ip === packet.source && !endpoint.isLocal);
}

function readerOf(family: Family): KernelReader {
  const { kernel } = proxies.writer(family);
  if (!kernel) throw new Error('this mode has no reader of the kernel');
  return kernel;
}

function handle<Name extends NodeOperationName>(name: Name, input: NodeOperations[Name]['input']) {
  return handlers[name](input);
}

async function answer({ id, operation, input }: NodeCall): Promise<void> {
  try {
    tell({ id, output: await handle(operation, input) });
  } catch (error) {
    tell({ id, error: inspect(error) });
  }
}

function tell(message: FromNode): void {
  process.send?.(message);
}

process.on('message', (call) => void answer(call as NodeCall));
process.on('disconnect', () => process.exit(0));
tell({ ready: true });
