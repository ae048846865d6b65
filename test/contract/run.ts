/** Takes the steps of a case, and fails with the file and line of the one that went wrong. */
import { parsePackets } from '../scenarios/packets.ts';
import { ip } from '../plan/given.ts';
import type { DrivenNode, Deed, Outcome } from './node.ts';
import type { Case, Step } from './parse.ts';

export async function runCase(node: DrivenNode, { steps }: Case): Promise<void> {
  let outcome: Outcome = {};
  for (const [index, step] of steps.entries()) {
    try {
      outcome = (await take(node, step, outcome)) ?? outcome;
      const mayFail = steps[index - 1]?.kind === 'kernel takes the next write and nobody hears of it';
      const isExpected = mayFail || steps[index + 1]?.kind === 'expect failure';
      if (!isExpected && outcome.error !== undefined && !step.kind.startsWith('expect'))
        throw new Error(`it failed: ${outcome.error}`);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(`${step.place}: ${step.kind} ${step.argument}: ${reason}`, { cause: error });
    }
  }
}

/** Returns what the dataplane did, where it was called. */
async function take(node: DrivenNode, step: Step, last: Outcome): Promise<Outcome | undefined> {
  const { argument, lines } = step;
  switch (step.kind) {
    case 'serve':
      return node.serve(argument === '' ? lines : [argument, ...lines]);
    case 'node zone=':
      return node.setZone(argument);
    case 'node addresses':
      return node.setAddresses(argument.split(/\s+/));
    case 'restart':
      return node.restart();
    case 'rewrite':
      return node.rewrite();
    case 'retry':
      return node.retry();
    case 'kernel refuses everything':
      await node.refuse('everything');
      return undefined;
    case 'kernel refuses deletions':
      await node.refuse('deletions');
      return undefined;
    case 'kernel refuses':
      await node.refuse(argument);
      return undefined;
    case 'kernel accepts everything':
      await node.refuse(undefined);
      return undefined;
    case 'kernel takes the next write and nobody hears of it':
      await node.loseNextAnswer();
      return undefined;
    case 'kernel stops after':
      await node.stopAfter(Number.parseInt(argument, 10));
      return undefined;
    case 'another program flushes everything':
      return tamper(node, { kind: 'flush' });
    case 'another program deletes the hooks':
      return tamper(node, { kind: 'deleteHooks' });
    case 'another program deletes service':
      return tamper(node, { kind: 'deleteService', clusterIP: ip(argument) });
    case 'another program adds rules of its own':
      return void (await node.perform({ kind: 'addOwnRules' }));
    case 'connections open':
      await node.openConnections(parsePackets(lines.join('\n')));
      return undefined;
    case 'expect connections held':
      return expectEqual(await node.brokenConnections(), []);
    case 'connections end':
      await node.endConnections();
      return undefined;
    case 'watch':
      await node.watch(parsePackets(lines.join('\n')));
      return undefined;
    case 'expect packets':
      return expectPackets(node, lines);
    case 'expect writes <=':
      return expectAtMost(last.objects, Number(argument));
    case 'expect commits <=':
      return expectAtMost(last.commits, Number(argument));
    case 'expect nothing':
    case 'expect incremental':
    case 'expect full':
      return expectEqual([last.kind ?? 'none'], [step.kind.slice('expect '.length)]);
    case 'expect refused':
      return expectEqual(last.refused ?? [], argument === 'nothing' ? [] : argument.split(/\s+/));
    case 'expect failure':
      // Where everything is refused, a mode may name each service, or fail as a whole.
      if (last.error === undefined && argument === '' && last.refused?.length) return undefined;
      if (last.error === undefined) throw new Error('it did not fail');
      if (!last.error.includes(argument)) throw new Error(`it failed otherwise: ${last.error}`);
      return { ...last, error: undefined };
    case 'expect fresh':
      expectEqual(await node.differences(), []);
      return expectEqual(await node.missingForeign(), []);
  }
}

/** A protected table refuses it; another has everything again after a rewrite. */
async function tamper(node: DrivenNode, deed: Deed): Promise<Outcome | undefined> {
  const isDone = await node.perform(deed);
  if (isDone === node.isProtected)
    throw new Error(isDone ? 'the kernel did not refuse it' : 'the kernel refused it');
  if (!isDone) return undefined;
  if ((await node.differences()).length === 0) throw new Error('it changed nothing');
  const outcome = await node.rewrite();
  expectEqual(await node.differences(), []);
  return outcome;
}

/** Entries of clients are evicted right behind the write that they follow from, so a real kernel may need a moment. */
async function expectPackets(node: DrivenNode, lines: readonly string[]): Promise<undefined> {
  const rows = parsePackets(lines.join('\n'));
  const deadline = Date.now() + node.settleMs;
  for (;;) {
    const packets = await node.packets(rows);
    const [seen, expected] = [packets.map((each) => each[1]), packets.map((each) => each[0])];
    if (Date.now() >= deadline || seen.join('\n') === expected.join('\n')) return expectEqual(seen, expected);
  }
}

function expectAtMost(found: number | undefined, most: number): undefined {
  if (found === undefined || found > most) throw new Error(`there were ${found}`);
}

function expectEqual(found: readonly string[], wanted: readonly string[]): undefined {
  const [a, b] = [[...found].sort(), [...wanted].sort()];
  if (a.join('\n') === b.join('\n')) return;
  throw new Error(`expected\n  ${b.join('\n  ') || 'nothing'}\nfound\n  ${a.join('\n  ') || 'nothing'}`);
}
