/** What of a family is open, until everything is applied. */
import { expect, test } from 'vitest';
import { settle } from '../time/fakeClock.ts';
import { type Run, Stage } from './stage.ts';

const FAILS: Run = { report: new Error('no socket') };
const REFUSES: Run = { report: { refused: new Map([['a/b/TCP', new Error('line 7 failed')]]) } };

function change(stage: Stage, address = '10.96.0.1'): () => readonly string[] {
  stage.tell(`a/b ${address} 80`);
  return stage.runner.mark();
}

/** After its first sync. */
async function started(runs: readonly Run[] = []): Promise<Stage> {
  const stage = new Stage({ runs: [{}, ...runs] });
  stage.runner.request();
  await settle();
  return stage;
}

test('the first rules are, also before anything has come', async () => {
  const stage = new Stage({ isListing: true });
  const open = stage.runner.mark();
  expect(open()).toEqual(['IPv4: the first rules are not written yet']);
  stage.proxy.onSynced();
  stage.runner.request();
  await settle();
  expect([open(), stage.runner.mark()()]).toEqual([[], []]);
});

test('a change is until it is written, in its turn, and a later one is not its concern', async () => {
  const stage = await started();
  const open = change(stage);
  await stage.pass(0.999);
  expect([stage.syncs, open()]).toEqual([1, ['IPv4: changes are not written yet']]);
  await stage.pass(0.001);
  const later = change(stage, '10.96.0.3');
  expect([stage.syncs, open(), later()]).toEqual([2, [], ['IPv4: changes are not written yet']]);
});

test('a change is until the kernel can be reached, and why it cannot be is told', async () => {
  const stage = await started([FAILS, {}]);
  const open = change(stage);
  await stage.pass(1);
  expect(open()).toEqual(['IPv4: changes are not written yet; the last sync failed: no socket']);
  await stage.pass(30);
  expect(open()).toEqual([]);
});

test('what the kernel refuses is not, and the rest of what waits is written at once', async () => {
  const stage = await started([REFUSES, {}]);
  stage.writer.writesPerSync = 1;
  stage.tell('a/b 10.96.0.1 80', 'a/c 10.96.0.2 80', 'a/d 10.96.0.3 80');
  const open = stage.runner.mark();
  await stage.pass(1);
  expect(open()).toEqual([]);
  expect(stage.writer.syncs.flat()).toEqual(['a/b/TCP', 'a/c/TCP', 'a/d/TCP']);
  expect([...(stage.outcomes.at(-1)?.report.refused.keys() ?? [])]).toEqual(['a/b/TCP']);
  expect(stage.fulls).toBe(1);
});

test('what another program changed is until it is repaired', async () => {
  const stage = await started([FAILS, {}]);
  stage.runner.foreignChanges.noticed({ objects: ['chain KUBE-SERVICES'] });
  const open = stage.runner.mark();
  await settle();
  expect(open()[0]).toBe('IPv4: what another program changed is not repaired yet: chain KUBE-SERVICES');
  await stage.pass(30);
  expect(open()).toEqual([]);
});

test('what a sync begins is, by name', async () => {
  const stage = await started();
  let end: (() => void) | undefined;
  const done = new Promise<void>((resolve) => {
    end = resolve;
  });
  stage.sideWork = [{ what: 'flows are being deleted', done }];
  const open = change(stage);
  await stage.pass(1);
  expect(open()).toEqual(['IPv4: flows are being deleted']);
  end?.();
  await settle();
  expect(open()).toEqual([]);
});
