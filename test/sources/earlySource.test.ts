/** Events of a source that was started before there was somebody to take them. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ObjectKey, Service } from '../../src/model/objects.ts';
import { EarlySource } from '../../src/sources/earlySource.ts';
import type { Source, SourceEvents } from '../../src/sources/source.ts';
import { systemClock } from '../../src/time/systemClock.ts';
import { makeService } from '../../bench/cluster.ts';

class HandSource implements Source {
  events: SourceEvents | undefined;
  isStopped = false;

  start(events: SourceEvents): Promise<void> {
    this.events = events;
    return Promise.resolve();
  }

  stop(): Promise<void> {
    this.isStopped = true;
    return Promise.resolve();
  }
}

interface Taken extends SourceEvents {
  readonly services: Map<ObjectKey, Service>;
  readonly lines: string[];
}

function taker(onService: () => void = () => {}): Taken {
  const services = new Map<ObjectKey, Service>();
  const lines: string[] = [];
  return {
    services,
    lines,
    service: (key, current) => {
      lines.push(`service ${key}`);
      if (current) services.set(key, current);
      else services.delete(key);
      onService();
    },
    endpointSlice: (key) => lines.push(`slice ${key}`),
    node: (name) => lines.push(`node ${name}`),
    synced: () => lines.push('synced'),
    report: ({ message }) => lines.push(message),
  };
}

function keyOf(index: number): ObjectKey {
  return `team/service-${index}`;
}

test('what came early is emitted at the start, and synced last', async () => {
  const source = new HandSource();
  const early = new EarlySource(source, systemClock);
  source.events?.report({ severity: 'warning', where: 'x', message: 'a problem' });
  source.events?.service(keyOf(1), makeService(1));
  source.events?.service(keyOf(1), makeService(2));
  source.events?.node('node1', undefined);
  source.events?.synced();
  const taken = taker();
  await early.start(taken);
  expect(taken.lines).toEqual(['node node1', 'service team/service-1', 'a problem', 'synced']);
  expect(taken.services.get(keyOf(1))).toEqual(makeService(2));
  source.events?.service(keyOf(3), undefined);
  expect(taken.lines.at(-1)).toBe('service team/service-3');
});

test('a source that cannot start says so at the start, and not before', async () => {
  const source = new HandSource();
  source.start = () => Promise.reject(new Error('no such folder'));
  const early = new EarlySource(source, systemClock);
  await new Promise((resolve) => setTimeout(resolve, 5));
  await expect(early.start(taker())).rejects.toThrow('no such folder');
});

test('nothing is emitted after the end', async () => {
  const source = new HandSource();
  const early = new EarlySource(source, systemClock);
  for (let index = 0; index < 1000; index++) source.events?.service(keyOf(index), makeService(index));
  const taken = taker(() => void early.stop());
  await early.start(taken);
  expect(taken.lines).toHaveLength(1);
  expect(source.isStopped).toBe(true);
});

test('before, during and after the start: the last version of each object, as without it', async () => {
  const change = fc.record({ key: fc.nat(5), version: fc.option(fc.nat(3), { nil: undefined }) });
  const changes = fc.array(change, { maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(changes, changes, changes, async (before, during, after) => {
      const source = new HandSource();
      const early = new EarlySource(source, systemClock);
      const expected = new Map<ObjectKey, Service>();
      const emit = ({ key, version }: { key: number; version?: number | undefined }): void => {
        const service = version === undefined ? undefined : makeService(version);
        if (service) expected.set(keyOf(key), service);
        else expected.delete(keyOf(key));
        source.events?.service(keyOf(key), service);
      };
      for (const each of before) emit(each);
      const left = [...during];
      const taken = taker(() => {
        const next = left.shift();
        if (next) emit(next);
      });
      await early.start(taken);
      for (const each of [...left, ...after]) emit(each);
      expect(taken.services).toEqual(expected);
    }),
  );
});
