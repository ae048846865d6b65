/**
 * Changes to the kernel as data: a request, and what its refusals mean. Many go out in one datagram; the kernel works
 * through them in order, and one that fails stops none of the others.
 */
import { constants } from 'node:os';
import { errnoName } from '../system/libc.ts';
import { MessageWriter, NLMSG_ERROR, decodeErrno } from './codec.ts';
import type { Exchange } from './exchange.ts';
import { type Job, type NetlinkRequest, type Sequence, writeMessage } from './socket.ts';

export interface Change extends NetlinkRequest {
  /** Errors by which the kernel says that there is nothing to change. */
  readonly expected: ReadonlyMap<number, 'exists' | 'absent'>;
  /** For families that have errors of their own. */
  readonly nameOf?: (errno: number) => string;
}

export type ChangeOutcome =
  | { readonly state: 'done' }
  /** It is there already. */
  | { readonly state: 'exists' }
  /** It, or what it would be part of, is not there. */
  | { readonly state: 'absent' }
  | { readonly state: 'refused'; readonly errno: number; readonly name: string };

/**
 * When every single change is refused, all the refusals wait in the receive buffer, at about a kilobyte each. So many
 * fit into one of the usual size, which is what a socket without the rights to a larger one has.
 */
const MESSAGES_PER_DATAGRAM = 128;
/** Well under the usual send buffer, of which the kernel counts its own overhead too. */
const BYTES_PER_DATAGRAM = 1 << 16;

const DONE = { state: 'done' } as const;
export const EXISTS: ReadonlyMap<number, 'exists'> = new Map([[constants.errno.EEXIST, 'exists']]);
export const NOTHING: ReadonlyMap<number, never> = new Map<number, never>();

/** As many datagrams as the changes take. Outcomes in their order. */
export function changeJob(changes: readonly Change[], sequence: Sequence): Job<readonly ChangeOutcome[]> {
  const writer = new MessageWriter(changes.length * 64);
  const numbers: number[] = [];
  const exchanges: Exchange[] = [];
  let start = 0;
  let count = 0;
  for (const [index, change] of changes.entries()) {
    count += 1;
    const isLast =
      index === changes.length - 1 ||
      count === MESSAGES_PER_DATAGRAM ||
      writer.length - start >= BYTES_PER_DATAGRAM;
    const last = sequence.next();
    numbers.push(last);
    // Refusals come unasked. That the last one is acknowledged means that all before it are done or refused.
    writeMessage(writer, change, last, isLast);
    if (!isLast) continue;
    exchanges.push({ bytes: writer.length - start, last });
    start = writer.length;
    count = 0;
  }
  const errors = new Map<number, number>();
  return {
    bytes: writer.finish(),
    exchanges,
    // Also those that answers to other requests bring.
    take: (messages) => {
      for (const { type, sequence: number, payload } of messages)
        if (type === NLMSG_ERROR) errors.set(number, decodeErrno(payload));
    },
    result: () => changes.map((change, index) => outcomeOf(change, errors.get(numbers[index] ?? 0) ?? 0)),
  };
}

function outcomeOf({ expected, nameOf = errnoName }: Change, errno: number): ChangeOutcome {
  if (errno === 0) return DONE;
  const state = expected.get(errno);
  return state ? { state } : { state: 'refused', errno, name: nameOf(errno) };
}
