/** What is read from the kernel for a packet, beside what real packets do: as planned, and where another program was. */
import { deepEqual, equal } from 'node:assert/strict';
import { FAMILIES } from '../../../src/model/ip.ts';
import type { WalkResult } from '../../../src/modes/kernelRules.ts';
import { printWalk } from '../../scenarios/expectations.ts';
import { explainedRows } from '../../scenarios/explained.ts';
import { service, slice } from '../../scenarios/objects.ts';
import { type Fate, printRow, type Row } from '../../scenarios/packets.ts';
import { type Scenario, scenario } from '../../scenarios/scenario.ts';
import type { GuestNode } from '../guestNode.ts';
import { type GuestContext, type GuestTest, Mismatch } from '../suite.ts';

/** A scenario whose packets are sent; each is walked first, and IPVS keeps what the walk said. */
export function askedScenario(given: Scenario): GuestTest {
  return async (context) => {
    const node = await context.node('ipvs');
    const sender = await context.sender();
    const fates = await node.apply(given);
    const walks = await node.walk(given.rows);
    const asked = given.rows.flatMap((row, index): readonly Asked[] => {
      const [fate, walk] = [fates[index], walks[index]];
      return fate && walk ? [{ row, fate, walk }] : [];
    });
    const wrong = asked.flatMap(({ row, fate, walk }) =>
      mismatch('walked', printRow(row, fate), printWalk(row, walk)),
    );
    const explained = await explainedRows(
      'ipvs',
      given,
      asked.map(({ row, walk }) => ({ row, result: walk })),
    );
    wrong.push(
      ...asked.flatMap(({ row, fate }, index) =>
        mismatch('explained', printRow(row, fate), explained[index]),
      ),
    );
    const sendable = asked.filter(({ row }) => row.inLab);
    // A few at a time: the kernel forgets connections after ten seconds.
    for (let first = 0; first < sendable.length; first += ROWS_AT_ONCE) {
      const sent = sendable.slice(first, first + ROWS_AT_ONCE);
      const before = await connectionsIn(node);
      const seen = await sender.send(sent.map(({ row, fate }) => [row, fate] as const));
      wrong.push(
        ...sent.flatMap(({ row, fate }, index) => mismatch('seen', printRow(row, fate), seen[index])),
      );
      const after = await connectionsIn(node);
      const made = new Set([...after].filter((each) => !before.has(each)).map(withoutClient));
      wrong.push(...unkept(sent, made));
    }
    if (wrong.length > 0) throw new Mismatch(wrong.join('\n'));
  };
}

const ROWS_AT_ONCE = 16;

interface Asked {
  readonly row: Row;
  readonly fate: Fate;
  readonly walk: WalkResult;
}

function mismatch(word: string, expected: string, found: string | undefined): readonly string[] {
  return found === expected ? [] : [`expected  ${expected}\n${word.padEnd(10)}${found}`];
}

async function connectionsIn(node: GuestNode): Promise<ReadonlySet<string>> {
  const found = await Promise.all(FAMILIES.map((family) => node.counters(family)));
  return new Set(found.flatMap((each) => [...each.keys()]));
}

function withoutClient(connection: string): string {
  return connection.replace(/ for .*/, '');
}

/** Where the virtual or real server of a walk got no connection, or another did. */
function unkept(sent: readonly Asked[], made: ReadonlySet<string>): readonly string[] {
  const walked = new Set<string>();
  const missing = sent.flatMap(({ row, fate, walk }) => {
    const ways = walk.outcomes.flatMap(realServerOf);
    for (const way of ways) walked.add(way);
    const isSticky = fate.verdict === 'forward' && fate.sticky;
    const isKept = isSticky ? ways.some((way) => made.has(way)) : ways.every((way) => made.has(way));
    return isKept
      ? []
      : [`${printRow(row, fate)}: walked ${ways.join(', ')}, and IPVS made no such connection`];
  });
  const others = [...made].filter((each) => !walked.has(each));
  return [...missing, ...others.map((each) => `no walk passed ${each}`)];
}

/** `TCP 10.96.0.1:80 -> 10.244.1.11:8080` */
function realServerOf({ path }: WalkResult['outcomes'][number]): readonly string[] {
  return path.flatMap(({ hook, chain, text }) => {
    const [, server] = /^real server (\S+), /.exec(text) ?? [];
    return hook === 'ipvs' && server !== undefined ? [`${chain} -> ${server}`] : [];
  });
}

const SHOP = scenario(
  'a shop',
  [service('web', { clusterIP: '10.96.1.1', ports: '80' }), slice('web', '8080', 'pod-a', 'pod-c')],
  'pod-b tcp 10.96.1.1:80 -> pod-a pod-c',
);
const SERVER = '10.96.1.1:80';

interface Found {
  readonly walk: readonly string[];
  /** The last step of the first outcome. */
  readonly end: string;
  readonly differences: readonly string[];
  /** What pod-b got when it dialled. */
  readonly got: readonly string[];
}

/** Another program changes node1; then the question, and real packets; then a sync mends it. */
async function after(context: GuestContext, command: string): Promise<Found> {
  const node = await context.node('ipvs');
  const lab = await context.lab();
  await node.apply(SHOP);
  await lab.host('node1').run(command.split(' '));
  const [walk] = await node.walk(SHOP.rows);
  const outcomes = walk?.outcomes ?? [];
  const replies = [];
  for (let count = 0; count < 4; count++)
    replies.push(await lab.host('pod-b').request('tcp', '10.96.1.1', 80, { timeoutMs: 5000 }));
  const differences = await node.compare('IPv4');
  await node.resync();
  deepEqual(await node.compare('IPv4'), []);
  return {
    walk: outcomes.map((each) => (each.kind === 'forward' ? each.to : each.kind)),
    end: outcomes[0]?.path.at(-1)?.text ?? '',
    differences: differences.map(({ kind, object }) => `${kind} ${object}`),
    got: [...new Set(replies.map((each) => (each.outcome === 'answer' ? each.reply.address : each.outcome)))],
  };
}

export const IPVS_QUESTIONS: Readonly<Record<string, GuestTest>> = {
  'after all that came before, the kernel differs in nothing from the plan': async (context) => {
    const node = await context.node('ipvs');
    await node.apply(SHOP);
    await node.walk(SHOP.rows);
    for (const family of FAMILIES) deepEqual(await node.compare(family), []);
  },

  'another program deletes a virtual server: the walk shows that there is none, and packets are refused':
    async (context) => {
      const { walk, end, differences, got } = await after(context, `ipvsadm -D -t ${SERVER}`);
      deepEqual(walk, ['pass']);
      equal(end, 'no virtual server');
      deepEqual(differences, [
        `missing virtual server TCP ${SERVER}`,
        `missing real server of virtual server TCP ${SERVER}`,
        `missing real server of virtual server TCP ${SERVER}`,
      ]);
      deepEqual(got, ['refused']);
    },

  'another program empties a set: the walk ends at the rule that refuses': async (context) => {
    const { walk, end, differences, got } = await after(context, 'ipset flush KUBE-CLUSTER-IP');
    deepEqual(walk, ['reject']);
    equal(/--match-set KUBE-IPVS-IPS dst -j REJECT/.test(end), true, end);
    deepEqual(differences, ['missing entry of the set KUBE-CLUSTER-IP']);
    deepEqual(got, ['refused']);
  },

  'another program sets a weight of 0: the walk leaves that real server out': async (context) => {
    const { walk, differences, got } = await after(
      context,
      `ipvsadm -e -t ${SERVER} -r 10.244.1.11:8080 -m -w 0`,
    );
    deepEqual(walk, ['10.244.2.11']);
    deepEqual(differences, [`different real server of virtual server TCP ${SERVER}`]);
    deepEqual(got, ['10.244.2.11']);
  },

  'virtual and real servers have counted what came': async (context) => {
    const node = await context.node('ipvs');
    const lab = await context.lab();
    await node.apply(SHOP);
    const packetsOf = async (): Promise<readonly number[]> => {
      const [walk] = await node.walk(SHOP.rows);
      const steps = (walk?.outcomes ?? []).flatMap(({ path }) => path.filter(({ hook }) => hook === 'ipvs'));
      return steps.map(({ packets }) => packets ?? Number.NaN);
    };
    const before = await packetsOf();
    equal(before.length, 4);
    for (let count = 0; count < 4; count++)
      equal(
        (await lab.host('pod-b').request('tcp', '10.96.1.1', 80, { timeoutMs: 30_000 })).outcome,
        'answer',
      );
    // The kernel adds them up every two seconds.
    for (let tries = 0; ; tries++) {
      const now = await packetsOf();
      if (now.every((count, index) => count > (before[index] ?? 0))) return;
      if (tries === 60) throw new Mismatch(`counted ${now.join(' ')}, and before ${before.join(' ')}`);
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  },
};
