/** Events for tests of the page. */
import type { ChangeRecord } from '../../src/explain/types.ts';
import type { SyncEvent } from '../../page/src/views/syncsStages.ts';

export function syncAt(at: number, more: Partial<SyncEvent> = {}): SyncEvent {
  return {
    kind: 'sync',
    at,
    family: 'IPv4',
    sync: 'incremental',
    cause: 'Service shop/web changed',
    commits: 1,
    objects: 3,
    ms: 4,
    planMs: 1,
    writeMs: 3,
    ...more,
  };
}

export function changeAt(
  committedAt: number,
  more: Partial<ChangeRecord> = {},
): ChangeRecord & { readonly kind: 'change' } {
  return {
    kind: 'change',
    id: committedAt,
    family: 'IPv4',
    service: 'shop/web',
    causes: ['Service shop/web changed'],
    effects: ['shop/web:http/TCP: no affinity'],
    seenAt: committedAt - 5,
    plannedAt: committedAt - 4,
    committedAt,
    ...more,
  };
}
