/**
 * Every scenario with real packets through the nftables mode, on this machine's own kernel; and what is read from the kernel
 * for a packet says what becomes of it, and which elements count it.
 */
import { afterAll, expect, test } from 'vitest';
import { FAMILIES } from '../../src/model/ip.ts';
import type { WalkResult } from '../../src/modes/kernelRules.ts';
import { GuestNode } from '../guest/guestNode.ts';
import { useLab } from '../lab/requireLab.ts';
import { testProgram } from '../support/programs.ts';
import { SCENARIOS } from './cases/index.ts';
import { explainedRows } from './explained.ts';
import { PacketSender } from './labPackets.ts';
import { printWalk } from './expectations.ts';
import { type Fate, printRow, type Row, targetAt } from './packets.ts';
import { worldsOf } from './worlds.ts';

const lab = useLab();
let node: GuestNode | undefined;
let sender: PacketSender | undefined;

afterAll(async () => {
  await node?.close();
});

interface Expected {
  readonly row: Row;
  readonly fate: Fate;
  readonly walk: WalkResult;
}

test.each(worldsOf(SCENARIOS))('$name', async (scenario) => {
  node ??= await GuestNode.start(lab(), 'nftables', testProgram('node'));
  sender ??= new PacketSender(lab());
  const fates = await node.apply(scenario);
  const walks = await node.walk(scenario.rows);
  const expected = scenario.rows.flatMap((row, index): readonly Expected[] => {
    const [fate, walk] = [fates[index], walks[index]];
    return fate && walk ? [{ row, fate, walk }] : [];
  });
  expect(expected.map(({ row, walk }) => printWalk(row, walk))).toEqual(
    expected.map(({ row, fate, walk }) => printRow(row, rememberedFate(row, fate, walk))),
  );
  expect(
    await explainedRows(
      'nftables',
      scenario,
      expected.map(({ row, walk }) => ({ row, result: walk })),
    ),
  ).toEqual(expected.map(({ row, fate }) => printRow(row, fate)));
  for (const family of FAMILIES) expect(await node.compare(family)).toEqual([]);

  const sent = expected.filter(({ row }) => row.inLab && row.transport !== 'sctp');
  const before = await countersIn(node);
  expect(await sender.send(sent.map(({ row, fate }) => [row, fate] as const))).toEqual(
    sent.map(({ row, fate }) => printRow(row, fate)),
  );
  const after = await countersIn(node);
  const moved = new Set(
    [...after].filter(([text, count]) => count > (before.get(text) ?? 0)).map(([text]) => text),
  );
  expectMoved(sent, moved);
});

/** A client of the world before may still be remembered: then it is sent to one of the endpoints. */
function rememberedFate(row: Row, fate: Fate, { outcomes }: WalkResult): Fate {
  const [only, ...others] = outcomes;
  const isKnown = only?.path.some(({ found }) => found.some((text) => text.startsWith('affinity-')));
  if (fate.verdict !== 'forward' || !isKnown || only?.kind !== 'forward' || others.length > 0) return fate;
  const { host, port } = targetAt(row, only.to, only.port, only.masqueraded);
  return { ...fate, targets: fate.targets.filter((target) => target.host === host && target.port === port) };
}

async function countersIn(started: GuestNode): Promise<ReadonlyMap<string, number>> {
  const found = [];
  for (const family of FAMILIES) found.push(...(await started.counters(family)));
  return new Map(found);
}

/** Elements that count have counted where a walk found them, and nowhere else. */
function expectMoved(sent: readonly Expected[], moved: ReadonlySet<string>): void {
  const onPaths = new Set<string>();
  const uncounted: string[] = [];
  for (const { row, fate, walk } of sent) {
    const ways = walk.outcomes.map(({ path }) =>
      path.flatMap(({ found, packets }) => (packets === undefined ? [] : found)),
    );
    for (const text of ways.flat()) onPaths.add(text);
    const isCounted = (texts: readonly string[]): boolean => texts.every((text) => moved.has(text));
    // A client that is remembered goes one way only.
    const isSticky = fate.verdict === 'forward' && fate.sticky;
    if (!(isSticky ? ways.some(isCounted) : ways.every(isCounted))) uncounted.push(printRow(row, fate));
  }
  expect(uncounted).toEqual([]);
  expect([...moved].filter((text) => !onPaths.has(text))).toEqual([]);
}
