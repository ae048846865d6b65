import { expect, test } from 'vitest';
import { recordRoutes } from '../../../src/daemon/api/recordRoutes.ts';
import { apiPage } from '../../../src/daemon/api/routes.ts';
import { QuestionTurns } from '../../../src/daemon/api/turns.ts';
import type { ChangeRecord, WatchEvent } from '../../../src/explain/types.ts';
import { systemClock } from '../../../src/time/systemClock.ts';
import { askPage } from './ask.ts';

function record(id: number, service: string): ChangeRecord {
  return { id, family: 'IPv4', service, causes: [], effects: [], seenAt: id, plannedAt: id };
}

const RECORDS = [record(2, 'shop/db'), record(1, 'shop/web')];
const FLOWS: WatchEvent = { kind: 'conntrack', at: 3, family: 'IPv4', deleted: 1, ms: 1 };
const CHANGE: WatchEvent = { kind: 'change', ...record(1, 'shop/web') };

function make(recentEvents?: () => readonly WatchEvent[]) {
  const turns = new QuestionTurns({ clock: systemClock, isSyncing: () => false });
  const records = (service?: string): readonly ChangeRecord[] =>
    RECORDS.filter((each) => service === undefined || each.service === service);
  const page = apiPage(recordRoutes({ records, recentEvents, turns }), () => undefined);
  return async (path: string): Promise<unknown> => {
    const { status, text } = await askPage(page, path);
    return status === 200 ? (JSON.parse(text) as unknown) : status;
  };
}

test('events, all or of some kinds', async () => {
  const ask = make(() => [CHANGE, FLOWS]);
  expect(await ask('/v1/events')).toEqual([CHANGE, FLOWS]);
  expect(await ask('/v1/events?kind=conntrack')).toEqual([FLOWS]);
  expect(await ask('/v1/events?kind=conntrack&kind=change')).toEqual([CHANGE, FLOWS]);
  expect(await ask('/v1/events?kind=sync')).toEqual([]);
  expect(await ask('/v1/events?kind=syncs')).toBe(400);
});

test('where no events are kept, the changes, oldest first', async () => {
  const ask = make();
  expect(await ask('/v1/events')).toEqual([CHANGE, { kind: 'change', ...record(2, 'shop/db') }]);
});

test('changes of one service', async () => {
  const ask = make();
  expect(await ask('/v1/history')).toEqual(RECORDS);
  expect(await ask('/v1/history?service=shop/db')).toEqual([record(2, 'shop/db')]);
});
