/** Services that changed, put where they belong in a table that is in order. */
import type { ServiceLine } from './line.ts';

/** `undefined`: it is gone. */
export type LineChanges = ReadonlyMap<string, ServiceLine | undefined>;

/** Lines that did not change stay the same objects; where none did, so does the list. */
export function withChanges(lines: readonly ServiceLine[], changes: LineChanges): readonly ServiceLine[] {
  const names = [...changes.keys()].sort();
  const result: ServiceLine[] = [];
  let at = 0;
  let isSame = true;
  for (const name of names) {
    const place = placeIn(lines, name, at);
    for (; at < place; at++) push(result, lines[at]);
    const before = lines[at]?.service === name ? lines[at++] : undefined;
    const after = changes.get(name);
    const isEqual = before?.line === after?.line;
    isSame &&= isEqual;
    push(result, isEqual ? before : after);
  }
  for (; at < lines.length; at++) push(result, lines[at]);
  return isSame ? lines : result;
}

function push(lines: ServiceLine[], line: ServiceLine | undefined): void {
  if (line) lines.push(line);
}

/** Where the name is, or would be. */
function placeIn(lines: readonly ServiceLine[], name: string, from = 0): number {
  let [low, high] = [from, lines.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((lines[middle]?.service ?? '') < name) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Which lines of `after` are new or other than in `before`. Both are in order. */
export function differingLines(
  before: readonly ServiceLine[],
  after: readonly ServiceLine[],
): readonly string[] {
  const names: string[] = [];
  let at = 0;
  for (const line of after) {
    while (at < before.length && (before[at]?.service ?? '') < line.service) at++;
    if (before[at]?.service !== line.service || before[at]?.line !== line.line) names.push(line.service);
  }
  return names;
}
