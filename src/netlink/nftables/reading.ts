/**
 * The elements of sets, all of them. Each message of the kernel's answer walks the hash table from its start again, so
 * the time grows with the square: 10 ms for ten thousand elements, seven tenths of a second for a hundred thousand, ten
 * seconds for three hundred thousand (Linux 6.18).
 */
import { TimeSlice, runSliced } from '../../time/timeSlice.ts';
import { systemClock } from '../../time/systemClock.ts';
import type { NetlinkChannel } from '../channel.ts';
import type { Message } from '../codec.ts';
import { DUMP_ATTEMPTS, changedTooOften } from '../dump.ts';
import { type SetElement, type SetPlace, decodeElements, getElements } from './elements.ts';

export type ElementsReply =
  | { readonly kind: 'answered'; readonly elements: readonly SetElement[] }
  /** ENOENT: there is no such set. */
  | { readonly kind: 'refused'; readonly errno: number; readonly name: string };

/** Answers in the order of the places. */
export async function readElements(
  channel: NetlinkChannel,
  places: readonly SetPlace[],
): Promise<readonly ElementsReply[]> {
  const replies: ElementsReply[] = [];
  let left = places.map((place, index) => ({ place, index }));
  for (let attempt = 0; left.length > 0; attempt++) {
    if (attempt === DUMP_ATTEMPTS) throw changedTooOften('the elements of a set');
    const again: typeof left = [];
    const answers = await channel.dumpAll(left.map(({ place }) => getElements(place)));
    for (const [at, asked] of left.entries()) {
      const answer = answers[at];
      if (!answer || answer.kind === 'refused') {
        if (answer) replies[asked.index] = answer;
        continue;
      }
      const elements = await runSliced(decoding(answer.messages), new TimeSlice(systemClock));
      if (hasDuplicates(elements)) again.push(asked);
      else replies[asked.index] = { kind: 'answered', elements };
    }
    left = again;
  }
  return replies;
}

/** Others have their turn between two messages: there may be hundreds of thousands of elements. */
function* decoding(messages: readonly Message[]): Generator<void, readonly SetElement[]> {
  const elements: SetElement[] = [];
  for (const { payload } of messages) {
    for (const element of decodeElements(payload).elements) elements.push(element);
    yield;
  }
  return elements;
}

/**
 * While a hash table grows, which it does for a moment after it was filled, elements change their places. Some are
 * then answered twice and as many not at all, and the kernel does not say that its answer is no good.
 */
function hasDuplicates(elements: readonly SetElement[]): boolean {
  const keys = new Set<string>();
  for (const { key, isIntervalEnd } of elements) keys.add(keyText(key) + (isIntervalEnd ? 'end' : ''));
  return keys.size < elements.length;
}

/** A character for each byte. */
function keyText(key: Uint8Array): string {
  return String.fromCharCode(...key);
}
