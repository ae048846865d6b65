/** What differs between two configurations, for the log of a reload. */
import { type EffectiveConfig, toFields } from './effective.ts';
import type { Reload } from './entry.ts';
import { valueAt } from './fields.ts';
import { FIELDS } from './table.ts';

export interface ConfigChange {
  readonly path: string;
  readonly before: string;
  readonly after: string;
  readonly reload: Reload;
}

export function diffConfig(before: EffectiveConfig, after: EffectiveConfig): readonly ConfigChange[] {
  const old = toFields(before);
  const changed = toFields(after);
  // Sync periods stand in the section of the mode: shown as if that had stayed, or a new mode would change them all.
  const aligned = toFields({ ...after, mode: before.mode });
  return FIELDS.flatMap((field): readonly ConfigChange[] => {
    const [from, to] = [
      field.kind.print(valueAt(old, field)),
      field.kind.print(valueAt(field.path === 'mode' ? changed : aligned, field)),
    ];
    return from === to
      ? []
      : [{ path: field.path, before: from, after: to, reload: field.reload ?? 'restart' }];
  });
}
