/** Names, labels and times that every kind has in `metadata`. */
import type { Cursor } from './cursor.ts';
import { LABEL, type NameRule, readName, readOptionalName } from './names.ts';
import { readTime } from './read.ts';

export interface Metadata {
  readonly namespace: string;
  readonly name: string;
}

/** A manifest may leave the namespace out, as it may for kubectl. */
export function readMetadata(metadata: Cursor, nameRule: NameRule): Metadata {
  return {
    namespace: readOptionalName(metadata.field('namespace'), LABEL) || 'default',
    name: readName(metadata.field('name'), nameRule),
  };
}

export function label(metadata: Cursor, name: string): Cursor {
  return metadata.map('labels').field(name);
}

/** A selector looks at the name alone, so an empty value counts. */
export function hasLabel(metadata: Cursor, name: string): boolean {
  return label(metadata, name).value !== undefined;
}

export const TRIGGER_TIME = 'endpoints.kubernetes.io/last-change-trigger-time';
export const HEADLESS = 'service.kubernetes.io/headless';

export function readTriggerTime(metadata: Cursor): number | undefined {
  return readTime(metadata.map('annotations').field(TRIGGER_TIME));
}
