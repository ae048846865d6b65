import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LineSplitter } from '../../../src/sources/api/split.ts';
import { chunksOf, cuts } from './chunks.ts';

function split(text: string, at: readonly number[] = []): readonly string[] {
  const splitter = new LineSplitter();
  const lines = chunksOf(text, at).flatMap((chunk) => [...splitter.push(chunk)]);
  splitter.end();
  return lines;
}

describe('frames', () => {
  it('are the same wherever the chunks end', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue().map((value) => JSON.stringify(value))), cuts(), (frames, at) => {
        expect(split(frames.map((frame) => `${frame}\n`).join(''), at)).toEqual(frames);
      }),
    );
  });

  it('may have blank lines and carriage returns between them', () => {
    expect(split('\n{"a":"ü"}\r\n\r\n  \n7\n')).toEqual(['{"a":"ü"}\r', '7']);
  });

  it('end with a newline, or were cut off', () => {
    expect(() => split('{}\n{"a":')).toThrow('in the middle of a frame');
    expect(() => split('{}')).toThrow('in the middle of a frame');
    expect(split('{}\n  ')).toEqual(['{}']);
  });

  it('are not longer than a limit', () => {
    const splitter = new LineSplitter(10);
    expect([...splitter.push(Buffer.from('123456789\n123456789\n12345'))]).toHaveLength(2);
    expect(() => [...splitter.push(Buffer.from('678901'))]).toThrow('longer than 10 bytes');
  });
});
