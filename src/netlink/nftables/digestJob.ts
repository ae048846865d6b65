/** Asks for the digests of rules and the names of chains, which the thread that reads them makes. */
import { errnoName } from '../../system/libc.ts';
import { malformedMessage } from '../codec.ts';
import { type Job, type NetlinkRefusal, type NetlinkRequest, requestJob, type Sequence } from '../request.ts';
import { type DumpedChain, readReducedChains, type ReducedChains } from './chainReducer.ts';
import { readReduced } from './ruleReducer.ts';

export type RulesReply =
  | {
      readonly kind: 'answered';
      /** Something was changed during the dump. */
      readonly interrupted: boolean;
      /** Of each rule `WORDS_PER_RULE`: two of digest, the high one first, and two of its handle. */
      readonly words: Uint32Array;
    }
  | NetlinkRefusal;

/** Dumps of rules, each in a datagram of its own. Results in their order. */
export function digestJob(
  requests: readonly NetlinkRequest[],
  sequence: Sequence,
): Job<readonly RulesReply[]> {
  const { bytes, exchanges, take } = requestJob(requests, sequence);
  const replies = new Map<number, RulesReply>();
  return {
    bytes,
    exchanges,
    take,
    reduced: {
      by: 'rules',
      take: (reduced) => {
        for (const { sequence: number, errno, interrupted, words } of readReduced(reduced))
          if (errno === 0) replies.set(number, { kind: 'answered', interrupted, words });
          else replies.set(number, { kind: 'refused', errno, name: errnoName(errno) });
      },
    },
    result: () =>
      exchanges.map(({ last }) => {
        const reply = replies.get(last);
        if (!reply) throw malformedMessage('rules without an end');
        return reply;
      }),
  };
}

export type ChainsReply =
  | { readonly kind: 'answered'; readonly interrupted: boolean; readonly chains: readonly DumpedChain[] }
  | NetlinkRefusal;

/** All chains of a family. */
export function chainsJob(request: NetlinkRequest, sequence: Sequence): Job<ChainsReply> {
  let reply: ReducedChains | undefined;
  return {
    ...requestJob([request], sequence),
    reduced: {
      by: 'chains',
      take: (reduced) => (reply = readReducedChains(reduced)),
    },
    result: () => {
      if (!reply) throw malformedMessage('chains without an end');
      const { errno, interrupted, chains } = reply;
      if (errno !== 0) return { kind: 'refused', errno, name: errnoName(errno) };
      return { kind: 'answered', interrupted, chains };
    },
  };
}
