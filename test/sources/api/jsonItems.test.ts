import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ApiFailure } from '../../../src/sources/api/failure.ts';
import { ItemSplitter, type ListEnvelope } from '../../../src/sources/api/split.ts';
import { chunksOf, cuts } from './chunks.ts';

function split(
  text: string,
  at: readonly number[] = [],
): { items: readonly unknown[]; envelope: ListEnvelope } {
  const splitter = new ItemSplitter();
  const items: unknown[] = [];
  for (const chunk of chunksOf(text, at)) items.push(...splitter.push(chunk));
  return { items, envelope: splitter.end() };
}

const METADATA = { resourceVersion: '77', continue: 'abc', remainingItemCount: 3 };
const ENVELOPE: ListEnvelope = {
  kind: 'ServiceList',
  resourceVersion: '77',
  continueToken: 'abc',
  hasItems: true,
};

describe('a list', () => {
  const anyJson = fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown);
  const anyIndent = fc.constantFrom(undefined, 1, '\t');

  it('is cut into the same items wherever its chunks end', () => {
    fc.assert(
      fc.property(fc.array(anyJson), anyIndent, fc.boolean(), cuts(), (items, indent, metadataFirst, at) => {
        const list = metadataFirst
          ? { kind: 'ServiceList', apiVersion: 'v1', metadata: METADATA, items }
          : { items, metadata: METADATA, apiVersion: 'v1', kind: 'ServiceList' };
        expect(split(JSON.stringify(list, undefined, indent), at)).toEqual({ items, envelope: ENVELOPE });
      }),
    );
  });

  it('may have other fields, with anything in them, on any side', () => {
    fc.assert(
      fc.property(fc.array(anyJson), anyJson, anyJson, cuts(), (items, before, after, at) => {
        const list = { x: before, kind: 'ServiceList', items, y: after, metadata: METADATA };
        expect(split(JSON.stringify(list), at)).toEqual({ items, envelope: ENVELOPE });
      }),
    );
  });

  it('that is cut off is never taken for a whole one', () => {
    const text = JSON.stringify({ kind: 'ServiceList', metadata: METADATA, items: [{ a: '}]' }, 'ü"\\', 7] });
    for (let length = 0; length < text.length; length++) {
      expect(() => split(text.slice(0, length))).toThrow(ApiFailure);
    }
  });

  it('of nothing', () => {
    expect(split('{"kind":"ServiceList","metadata":{"resourceVersion":"1"},"items":null}')).toEqual({
      items: [],
      envelope: {
        kind: 'ServiceList',
        resourceVersion: '1',
        continueToken: '',
        hasItems: true,
      },
    });
    expect(split(' { "items" : [ ] }\n').envelope.hasItems).toBe(true);
    expect(split('{}').envelope.hasItems).toBe(false);
  });

  it.each([
    '[]',
    'null',
    '<html>',
    '{"items":[1,]}',
    '{"items":[1 2]}',
    '{"items":{"a":1}}',
    '{"items":[{]}]}',
    '{"items":[1],}',
    '{"items":[1]} x',
    '{"items":[1]}{}',
    '{items:[1]}',
    '{"items":[nul]}',
    '{"kind"}',
    '{"items":["\u0001"]}',
  ])('is not %s', (text) => {
    expect(() => split(text)).toThrow(expect.objectContaining({ kind: 'malformed' }));
  });

  it('holds no more than one item, and that only up to a limit', () => {
    const splitter = new ItemSplitter(100);
    const push = (text: string): readonly unknown[] => [...splitter.push(Buffer.from(text))];
    expect(push(`{"items":["${'x'.repeat(90)}"`)).toHaveLength(1);
    expect(push(`,"${'x'.repeat(90)}`)).toEqual([]);
    expect(() => push('x'.repeat(20))).toThrow('longer than 100 bytes');
  });
});
