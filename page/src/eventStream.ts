/** Server-sent events, as they come in pieces. */
import type { WatchEvent } from '../../src/explain/types.ts';

export class EventStream {
  #rest = '';

  /** The events that `text` completes. */
  push(text: string): readonly WatchEvent[] {
    const blocks = (this.#rest + text).split('\n\n');
    this.#rest = blocks.pop() ?? '';
    return blocks.flatMap(eventOf);
  }
}

/** None of a comment, which only says that the proxy is there. */
function eventOf(block: string): readonly WatchEvent[] {
  const data = block
    .split('\n')
    .filter((line) => line.startsWith('data:'))
    .map((line) => (line[5] === ' ' ? line.slice(6) : line.slice(5)))
    .join('\n');
  return data === '' ? [] : [JSON.parse(data) as WatchEvent];
}
