/** Whether it all came out right: what packets do, held against `decide`, and the rules against those made from nothing. */
import type { Lab } from '../../lab/lab.ts';
import type { Transport } from '../../lab/protocol.ts';
import { addressOf, type HostName } from '../../lab/topology.ts';
import { FAMILIES, type Family, hostPort, type Ip } from '../../src/model/ip.ts';
import { objectKey, type Protocol } from '../../src/model/objects.ts';
import type { Mechanism } from '../../src/modes/deviations.ts';
import { decide } from '../../src/plan/decide.ts';
import type { Plan } from '../../src/plan/types.ts';
import { Proxier } from '../../src/proxy/proxier.ts';
import { parseManifests } from '../../src/sources/manifests/source.ts';
import { insteadIn } from '../../test/scenarios/expectations.ts';
import { PacketSender } from '../../test/scenarios/labPackets.ts';
import { type Fate, interfaceOf, printRow, type Row, targetAt } from '../../test/scenarios/packets.ts';
import { NODE1, POD_NETWORK } from '../../test/scenarios/scenario.ts';
import type { SoakMode } from './modes.ts';
import type { SoakNode } from './node.ts';

const SENDERS: readonly (readonly [HostName, number])[] = [
  ['pod-a', 0],
  ['client', 0],
  ['client', 1],
  ['node1', 0],
];
const TRANSPORTS: Readonly<Record<Protocol, Transport>> = { TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' };
/** All at once would take too long to be answered in time. */
const ROWS_AT_ONCE = 24;

/** Rows in which packets did something else, as `what was seen, not what was expected`. */
export async function wrongPackets(
  lab: Lab,
  mechanism: Mechanism,
  manifests: string,
): Promise<{ readonly rows: number; readonly wrong: readonly string[] }> {
  const plans = await Promise.all(FAMILIES.map((family) => planOf(family, manifests)));
  const rows = plans.flatMap((plan) => rowsOf(plan, mechanism));
  const sender = new PacketSender(lab);
  const wrong: string[] = [];
  for (let start = 0; start < rows.length; start += ROWS_AT_ONCE) {
    const some = rows.slice(start, start + ROWS_AT_ONCE);
    const seen = await sender.send(some);
    some.forEach(([row, fate], index) => {
      const expected = printRow(row, fate);
      // The node is told at once that its own datagram was dropped.
      const observed = seen[index]?.replace('unreachable (EPERM)', 'drop');
      if (observed !== expected) wrong.push(`${observed}, not ${expected}`);
    });
  }
  return { rows: rows.length, wrong };
}

async function planOf(family: Family, text: string): Promise<Plan> {
  const { services, slices, problems } = parseManifests(text, 'soak');
  const [problem] = problems;
  if (problem) throw new Error(JSON.stringify(problem));
  const proxy = new Proxier({
    family,
    settings: {
      nodeName: 'node1',
      bindAddress: undefined,
      detectLocal: POD_NETWORK,
      masqueradeAll: false,
      nodePortAddresses: [],
      localhostNodePorts: false,
    },
    writer: { sync: () => Promise.resolve(NO_REPORT), requestFull: () => {} },
  });
  for (const service of services) proxy.onService(objectKey(service.namespace, service.name), service);
  for (const slice of slices) proxy.onEndpointSlice(objectKey(slice.namespace, slice.name), slice);
  proxy.onSynced();
  await proxy.sync();
  return proxy.plan;
}

const NO_REPORT = {
  kind: 'full',
  commits: 0,
  objects: 0,
  refused: new Map<never, never>(),
  repaired: [],
  retryAfterMs: undefined,
  counts: {},
} as const;

/** From everybody to every frontend; not where endpoints were made up. */
function rowsOf(plan: Plan, mechanism: Mechanism): readonly (readonly [Row, Fate])[] {
  const { family } = plan;
  return [...plan.servicePorts.values()].flatMap(({ frontends, protocol, pools }) => {
    if (
      [...(pools.cluster ?? []), ...(pools.local ?? [])].some(({ ip }) =>
        /^(10\.244\.9\.|fd00:244:9:)/.test(ip),
      )
    )
      return [];
    return frontends.flatMap(({ address, port }) =>
      SENDERS.map(([host, index]) => {
        const row = rowOf(host, index, protocol, address ?? addressOf('node1', family), port, family);
        return [row, fateOf(plan, mechanism, row)] as const;
      }),
    );
  });
}

function rowOf(
  host: HostName,
  index: number,
  protocol: Protocol,
  destination: Ip,
  port: number,
  family: Family,
): Row {
  const source = addressOf(host, family, index);
  const own = host === 'node1' && destination === addressOf('node1', family) ? destination : source;
  const transport = TRANSPORTS[protocol];
  return {
    text: `${host} ${transport} ${hostPort(destination, port)} from ${own}`,
    host,
    transport,
    family,
    packet: { source: own, destination, protocol, port, inInterface: interfaceOf(host) },
    fate: { verdict: 'pass' },
    withPorts: true,
    inLab: true,
  };
}

function fateOf(plan: Plan, mechanism: Mechanism, row: Row): Fate {
  const instead = insteadIn(mechanism, plan, row);
  if (instead) return instead;
  const decision = decide(plan, row.packet, NODE1);
  if (decision.verdict !== 'forward') return { verdict: decision.verdict };
  return {
    verdict: 'forward',
    sticky: decision.servicePort.affinitySeconds !== undefined,
    targets: decision.targets.map(({ endpoint, masquerade }) =>
      targetAt(row, endpoint.ip, endpoint.port, masquerade),
    ),
  };
}

/** Lines that our rules have and fresh ones would not, and the other way round. Leaves the node with fresh ones. */
export async function strayLines(
  node: SoakNode,
  mode: SoakMode,
  program: string,
): Promise<readonly string[]> {
  const table = (await mode.rules(node.host)).split('\n');
  await node.end('SIGTERM');
  await mode.wipe(node.host);
  await node.start(program);
  const fresh = (await mode.rules(node.host)).split('\n');
  if (table.join('\n') === fresh.join('\n')) return [];
  const lines = [
    ...missingIn(fresh, table).map((line) => `only after the soak: ${line.trim()}`),
    ...missingIn(table, fresh).map((line) => `only when fresh: ${line.trim()}`),
  ];
  return lines.length > 0 ? lines : ['the same lines in another order'];
}

function missingIn(some: readonly string[], others: readonly string[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const line of some) counts.set(line, (counts.get(line) ?? 0) + 1);
  return others.filter((line) => {
    const left = counts.get(line) ?? 0;
    counts.set(line, left - 1);
    return left <= 0;
  });
}
