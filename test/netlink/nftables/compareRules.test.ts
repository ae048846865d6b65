/** Chains compared by digest where their rules arrive, and chains of others among those that are known. */
import { constants } from 'node:os';
import { describe, expect, test } from 'vitest';
import { type Message, MessageWriter } from '../../../src/netlink/codec.ts';
import { decodeRule } from '../../../src/netlink/nftables/objects.ts';
import { ChainDigester, RuleDigester } from '../../../src/netlink/nftables/ruleDigest.ts';
import { Sequence } from '../../../src/netlink/socket.ts';
import { ChainNameList, chainTest } from '../../../src/netlink/worker/chainFilter.ts';
import { ChainQuestionList, compareChains, readCompared } from '../../../src/netlink/worker/compareRules.ts';
import { runToEnd } from '../../../src/time/timeSlice.ts';
import { done, KernelPeer, object, refusal } from '../support/kernelPeer.ts';

const PLACE = { family: 'ip', table: 'nat' } as const;
const NEW_RULE = (10 << 8) | 6;
const NEW_CHAIN = (10 << 8) | 3;
const NFGENMSG = Uint8Array.of(2, 0, 0, 0);

/** The expressions of a rule that differs by its word alone. */
function expressions(word: string): Uint8Array {
  const writer = new MessageWriter(256, 0);
  writer.nested(1, (element) => {
    element.string(1, 'meta');
    element.nested(2, (data) => data.string(1, word));
  });
  return writer.finish().slice();
}

function rulePayload(word: string): Uint8Array {
  const writer = new MessageWriter(256, 0).raw(NFGENMSG).string(1, 'nat').string(2, 'c');
  return writer.attribute(4, expressions(word)).finish().slice();
}

function digestOf(words: readonly string[]): number {
  const rules = new RuleDigester();
  const chain = new ChainDigester().begin('');
  for (const word of words) {
    const { high, low } = rules.digest(expressions(word));
    chain.take(high, low);
  }
  return chain.end();
}

const CHAINS: Readonly<Record<string, readonly string[]>> = {
  same: ['a', 'b'],
  turned: ['b', 'a'],
  more: ['a', 'b', 'c'],
  interrupted: ['a', 'b'],
};

function* kernel(request: Message): Generator<Uint8Array> {
  const { chain } = decodeRule(request.payload);
  if (chain === 'refused') return yield refusal(request, constants.errno.EPERM);
  // Answers a request that timed out before.
  yield object({ ...request, sequence: request.sequence - 1 }, NEW_RULE, rulePayload('z'));
  for (const word of CHAINS[chain] ?? []) yield object(request, NEW_RULE, rulePayload(word));
  yield done(request, chain === 'interrupted');
}

describe('chains and their digests', () => {
  test('those that differ come back', () => {
    const names = ['same', 'turned', 'more', 'gone', 'same', 'interrupted', 'refused'];
    const questions = new ChainQuestionList(PLACE, names.length);
    for (const name of names) questions.add(name, digestOf(['a', 'b']));
    let turns = 0;
    const peer = new KernelPeer(kernel);
    const compared = readCompared(compareChains(peer, questions.finish(new Sequence()), () => turns++));
    expect(compared).toEqual([
      { place: 1, errno: 0, isInterrupted: false },
      { place: 2, errno: 0, isInterrupted: false },
      { place: 3, errno: 0, isInterrupted: false },
      { place: 5, errno: 0, isInterrupted: true },
      { place: 6, errno: constants.errno.EPERM, isInterrupted: false },
    ]);
    expect(turns).toBeGreaterThan(0);
    expect(peer.datagrams).toEqual(names.map(() => 1));
  });
});

describe('chains that are not known', () => {
  const message = (table: string, name: string): Uint8Array =>
    new MessageWriter()
      .message({ type: NEW_CHAIN, flags: 0, sequence: 1 }, (writer) =>
        writer.raw(NFGENMSG).string(1, table).string(3, name),
      )
      .finish()
      .slice();

  test('are left, by table and name', () => {
    const known = new ChainNameList();
    for (let number = 0; number < 3000; number++) known.add('nat', `KUBE-SVC-${number}`);
    const filter = runToEnd(chainTest({ kind: 'chains', known: known.finish() }));
    const isLeft = (table: string, name: string): boolean => filter.take(message(table, name)) !== undefined;
    expect(isLeft('nat', 'KUBE-SVC-0')).toBe(false);
    expect(isLeft('nat', 'KUBE-SVC-2999')).toBe(false);
    expect(isLeft('filter', 'KUBE-SVC-0')).toBe(true);
    expect(isLeft('nat', 'KUBE-SVC-3000')).toBe(true);
    expect(isLeft('nat', 'KUBE-SVC-')).toBe(true);
    expect(filter.examined).toBe(5);
  });
});
