import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EventStream } from '../../page/src/eventStream.ts';
import type { WatchEvent } from '../../src/explain/types.ts';

const LOST: WatchEvent = { kind: 'lost', at: 1, events: 2 };
const block = (event: WatchEvent): string => `data: ${JSON.stringify(event)}\n\n`;

describe('the stream of events', () => {
  test('comments and other fields are none', () => {
    expect(new EventStream().push(`:\n\nevent: x\nid: 3\n\n: still here\n${block(LOST)}`)).toEqual([LOST]);
  });

  test('data in several lines is one text', () => {
    expect(new EventStream().push('data:{"kind":"lost",\ndata: "at":1,"events":2}\n\n')).toEqual([LOST]);
  });

  test('what is not JSON is an error, so that the stream is opened again', () => {
    expect(() => new EventStream().push('data: {"kind":\n\n')).toThrow('JSON');
  });

  test('however it is cut, the same events come', () => {
    const events = fc.array(
      fc.record({ kind: fc.constant('lost' as const), at: fc.nat(), events: fc.nat() }),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(events, fc.array(fc.nat({ max: 400 })), (sent, cuts) => {
        const text = sent.map(block).join(':\n\n');
        const places = [0, ...cuts.map((cut) => cut % (text.length + 1)).sort((a, b) => a - b), text.length];
        const stream = new EventStream();
        const got = places.slice(1).flatMap((end, index) => stream.push(text.slice(places[index], end)));
        expect(got).toEqual(sent);
      }),
    );
  });
});
