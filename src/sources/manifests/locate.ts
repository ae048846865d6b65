/** Where a field of an object is written in its file, found again when it is asked for: positions are not kept. */
import { readFileSync } from 'node:fs';
import { attempt } from '../../errors.ts';
import type { TextPath } from '../../text/yaml.ts';
import { findObject } from './chunkReading.ts';
import { splitChunks } from './fileReading.ts';

/**
 * `examples/web.yaml:19`. `place` is `file:line:column` of the object, `id` its kind and name, `field` a path such as
 * `spec.ports[0].port`. Where the object has no such field: the line of its nearest parent.
 */
export function locateField(place: string, id: string, field: string): string | undefined {
  const [, file = '', line = ''] = /^(.*):(\d+):\d+$/s.exec(place) ?? [];
  const text = attempt(() => readFileSync(file, 'utf8'));
  if (text === undefined) return undefined;
  const chunk = splitChunks(text).findLast(({ linesAbove }) => linesAbove < Number(line));
  const positionOf = chunk && findObject(chunk.text, id);
  // The file may have changed since it was read.
  return positionOf && `${file}:${positionOf(pathOf(field)).line + chunk.linesAbove}`;
}

function pathOf(field: string): TextPath {
  return Array.from(field.matchAll(/\[(\d+)\]|[^.[\]]+/g), ([step, index]) =>
    index === undefined ? step : Number(index),
  );
}
