import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { parseManifests } from '../../../src/sources/manifests/store.ts';
import { JsonPositions } from '../../../src/text/json.ts';
import { parseManifest } from '../../../src/sources/manifests/parse.ts';
import { printSourceProblem } from '../../../src/sources/source.ts';

const PIECES = [
  'kind: Service',
  'kind: List',
  'items:',
  '- ',
  '  ',
  '\n',
  '---',
  '...',
  'metadata:',
  '{name: web}',
  '[',
  ']',
  '{',
  '}',
  '"',
  "'",
  '&a ',
  '*a',
  '<<: ',
  '!!binary ',
  '|',
  '>',
  '? ',
  ': ',
  '#',
  '%YAML 1.1',
  '\t',
  '\u0000',
  '\uD800',
  '\u2028',
  '{"a": 1',
  '\r\n',
];

describe('any text', () => {
  it('is read without a throw, and every problem has a place', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(fc.constantFrom(...PIECES), { maxLength: 30 }).map((pieces) => pieces.join('')),
    );
    fc.assert(
      fc.property(text, (each) => {
        for (const problem of parseManifests(each, 'f').problems.map(printSourceProblem)) {
          expect(problem).toMatch(/^f:[1-9]\d*:[1-9]\d*: (?:error|warning): /);
          expect(problem).not.toMatch(/[\p{Cc}\p{Cs}]/u);
        }
      }),
    );
  });

  it('says the same as YAML and as JSON', () => {
    const port = fc.record({ name: fc.constantFrom('a', 'b', 'C'), port: fc.integer({ min: -1, max: 3 }) });
    const service = fc.record({
      kind: fc.constant('Service'),
      metadata: fc.record({ name: fc.constantFrom('web', 'Web', '"; -j DROP') }),
      spec: fc.record({
        clusterIP: fc.constantFrom('10.0.0.1', 'x', ''),
        ports: fc.array(port, { maxLength: 3 }),
      }),
    });
    fc.assert(
      fc.property(service, (raw) => {
        const [yaml, json] = [stringify(raw), JSON.stringify(raw)].map((text) => parseManifests(text));
        expect(json?.services).toEqual(yaml?.services);
        expect(json?.problems.map(({ message }) => message)).toEqual(
          yaml?.problems.map(({ message }) => message),
        );
      }),
    );
  });

  it('has the same places for JSON whichever parser reads it', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })), fc.nat(3), (raw, indent) => {
        const text = JSON.stringify(raw, null, indent);
        const positions = new JsonPositions(text);
        // A comment makes it YAML.
        const [document] = parseManifest(`${text} # YAML`).documents;
        for (const path of pathsOf(raw)) expect(positions.offsetOf(path)).toBe(document?.offsetOf(path));
      }),
    );
  });
});

type Path = readonly (string | number)[];

function pathsOf(value: unknown, above: Path = []): readonly Path[] {
  if (typeof value !== 'object' || value === null) return [above];
  const keys: readonly (string | number)[] = Array.isArray(value) ? [...value.keys()] : Object.keys(value);
  const below = keys.flatMap((key) =>
    pathsOf((value as Record<string | number, unknown>)[key], [...above, key]),
  );
  return [above, [...above, 'no such key'], ...below];
}
