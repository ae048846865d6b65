import { expect, test } from 'vitest';
import { FamilyActivity } from '../../src/proxy/activity.ts';
import type { SyncOutcome } from '../../src/proxy/proxier.ts';

function outcome(kind: SyncOutcome['report']['kind']): SyncOutcome {
  const report = { kind, commits: 0, objects: 0, refused: new Map(), repaired: [], counts: {} };
  return { report, changes: [], triggers: [], planMs: 0 } as unknown as SyncOutcome;
}

test.each(['full', 'incremental', 'nothing'] as const)(
  'a family is served after a first sync: %s',
  (kind) => {
    const activity = new FamilyActivity({ family: 'IPv4', wallTime: () => 0, emit: () => undefined });
    expect(activity.status.isServed).toBe(false);
    activity.synced(outcome(kind), 1, 'start');
    expect(activity.status.isServed).toBe(true);
  },
);
