/** Where a field of an object is written in its file, found again when it is asked for: positions are not kept. */
import { readFileSync, statSync } from 'node:fs';
import { attempt } from '../../errors.ts';
import type { TextPath } from '../../text/yaml.ts';
import { findObject } from './chunkReading.ts';
import { detach, splitChunks } from './fileReading.ts';

/**
 * `examples/web.yaml:19`. `place` is `file:line:column` of the object, `id` its kind and name, `field` a path such as
 * `spec.ports[0].port`. Where the object has no such field: the line of its nearest parent.
 */
export function locateField(place: string, id: string, field: string): string | undefined {
  const [, file = '', line = ''] = /^(.*):(\d+):\d+$/s.exec(place) ?? [];
  const version = attempt(() => statSync(file));
  if (!version) return undefined;
  const key = [place, id, version.ino, version.size, version.mtimeMs].join('\n');
  if (last?.key !== key) last = { key, lineOf: findLines(file, Number(line), id) };
  const found = last.lineOf?.(pathOf(field));
  return found === undefined ? undefined : `${file}:${found}`;
}

type LineOf = (path: TextPath) => number;

/** One answer names many fields of one object. To find it takes a millisecond, and 30 in a file of 5 MB. */
let last: { readonly key: string; readonly lineOf: LineOf | undefined } | undefined;

function findLines(file: string, line: number, id: string): LineOf | undefined {
  const text = attempt(() => readFileSync(file, 'utf8'));
  if (text === undefined) return undefined;
  const chunk = splitChunks(text).findLast(({ linesAbove }) => linesAbove < line);
  const positionOf = chunk && findObject(detach(chunk.text), id);
  // The file may have changed since it was read.
  return positionOf && ((path) => positionOf(path).line + chunk.linesAbove);
}

function pathOf(field: string): TextPath {
  return Array.from(field.matchAll(/\[(\d+)\]|[^.[\]]+/g), ([step, index]) =>
    index === undefined ? step : Number(index),
  );
}
