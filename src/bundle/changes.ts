/** Reads a change of the history that came from elsewhere. */
import type { ChangeRecord } from '../explain/types.ts';
import { FAMILIES } from '../model/ip.ts';
import { type Cursor, project, readChoice, readInteger, readText } from '../text/cursor.ts';

const LATEST = 8_640_000_000_000_000;

/** `undefined`: it is none. */
export function readChange(raw: unknown): ChangeRecord | undefined {
  const read = project(raw, (root): ChangeRecord => {
    const committedAt = readTimeOf(root.field('committedAt'));
    const refused = readText(root.field('refused'));
    return {
      id: readInteger(root.field('id'), 0, Number.MAX_SAFE_INTEGER, 0),
      family: readChoice(root.field('family'), FAMILIES, 'IPv4'),
      service: readText(root.field('service')),
      causes: root.list('causes').map(readText),
      effects: root.list('effects').map(readText),
      seenAt: readTimeOf(root.field('seenAt')) ?? 0,
      plannedAt: readTimeOf(root.field('plannedAt')) ?? 0,
      ...(committedAt !== undefined && { committedAt }),
      ...(refused !== '' && { refused }),
    };
  });
  return read.kind === 'object' ? read.value : undefined;
}

/** Milliseconds since the epoch, with fractions perhaps. */
function readTimeOf(at: Cursor): number | undefined {
  if (at.missing) return undefined;
  if (typeof at.value === 'number' && at.value >= 0 && at.value <= LATEST) return at.value;
  at.refuse('is no time', 'milliseconds since the epoch');
  return undefined;
}
