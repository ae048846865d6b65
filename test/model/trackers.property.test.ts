/** Whatever happened on the way, a tracker ends where a new one would that saw the final objects only. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EndpointTracker } from '../../src/model/endpointTracker.ts';
import { ServiceTracker } from '../../src/model/serviceTracker.ts';
import { anyServiceLine, anySliceLine } from '../plan/anyCluster.ts';
import { applyAll, printEndpoints, service, slice } from '../plan/given.ts';

type Event = { readonly kind: 'sync' } | { readonly kind: 'set' | 'delete'; readonly line: string };

function events(line: fc.Arbitrary<string>): fc.Arbitrary<readonly Event[]> {
  return fc.array(
    fc.oneof(
      { weight: 4, arbitrary: fc.record({ kind: fc.constant('set' as const), line }) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('delete' as const), line }) },
      { weight: 1, arbitrary: fc.constant({ kind: 'sync' as const }) },
    ),
    { maxLength: 30 },
  );
}

const KEYS = ['a/x', 'a/y', 'b/z'];

test('services', () => {
  fc.assert(
    fc.property(events(anyServiceLine), (list) => {
      const tracker = new ServiceTracker('IPv4');
      const final = new Map<string, string>();
      const told = new Map<string, unknown>();
      const sync = (): void => {
        for (const [key, { previous, current }] of tracker.apply()) {
          expect(previous).toEqual(told.get(key) ?? []);
          expect(previous).not.toEqual(current);
          told.set(key, current);
        }
        expect(tracker.pendingCount).toBe(0);
        for (const key of KEYS) expect(tracker.portsOf(key)).toEqual(told.get(key) ?? []);
      };
      for (const event of list) {
        if (event.kind === 'sync') {
          sync();
          continue;
        }
        const key = event.line.split(' ')[0] ?? '';
        if (event.kind === 'set') final.set(key, event.line);
        else final.delete(key);
        const isPending = tracker.update(key, event.kind === 'set' ? service(event.line) : undefined);
        expect(isPending).toBe(tracker.pendingCount > 0);
      }
      sync();
      const fresh = new ServiceTracker('IPv4');
      for (const [key, line] of final) fresh.update(key, service(line));
      fresh.apply();
      expect(new Set(tracker.keys())).toEqual(new Set(fresh.keys()));
      for (const key of fresh.keys()) expect(tracker.portsOf(key)).toEqual(fresh.portsOf(key));
    }),
  );
});

test('slices', () => {
  fc.assert(
    fc.property(events(anySliceLine), (list) => {
      const tracker = new EndpointTracker('IPv4', 'node-a');
      const final = new Map<string, string>();
      const told = new Map<string, readonly string[]>();
      const sync = (): void => {
        const changed = applyAll(tracker);
        for (const key of KEYS) {
          const now = printEndpoints(tracker.endpointsOf(key));
          if (!changed.has(key)) expect(now).toEqual(told.get(key) ?? []);
          told.set(key, now);
        }
        expect(tracker.pendingCount).toBe(0);
      };
      for (const event of list) {
        if (event.kind === 'sync') {
          sync();
          continue;
        }
        const given = slice(event.line);
        const key = `${given.namespace}/${given.name}`;
        if (event.kind === 'set') final.set(key, event.line);
        else final.delete(key);
        tracker.update(key, event.kind === 'set' ? given : undefined);
      }
      sync();
      const fresh = new EndpointTracker('IPv4', 'node-a');
      for (const line of final.values()) {
        const given = slice(line);
        fresh.update(`${given.namespace}/${given.name}`, given);
      }
      applyAll(fresh);
      for (const key of KEYS) {
        expect(printEndpoints(tracker.endpointsOf(key))).toEqual(printEndpoints(fresh.endpointsOf(key)));
      }
    }),
  );
});

const ONE = 'x/s1 of s 80 | 10.0.0.1 node-a';

test.each([
  ['the same again', ONE, false],
  ['another endpoint', 'x/s1 of s 80 | 10.0.0.9', true],
  ['another service', 'x/s1 of t 80 | 10.0.0.1 node-a', true],
  ['a deletion', '- x/s1', true],
  ['the deletion of an unknown one', '- x/nobody', false],
  ['the other family', 'x/six of s 80 | fd00::1', false],
])('a slice that is told: %s', (_, line, isChange) => {
  const tracker = new EndpointTracker('IPv4', 'node-a');
  tracker.update('x/s1', slice(ONE));
  applyAll(tracker);
  const [key = ''] = line.replace(/^- /, '').split(' ');
  expect(tracker.update(key, line.startsWith('- ') ? undefined : slice(line))).toBe(isChange);
});

test('a time stamp alone is no change of endpoints', () => {
  const tracker = new EndpointTracker('IPv4', 'node-a');
  tracker.update('x/s1', slice(ONE));
  applyAll(tracker);
  expect(tracker.update('x/s1', { ...slice(ONE), triggerTime: 5 })).toBe(true);
  expect(applyAll(tracker).size).toBe(0);
});

test('services and slices that are deleted are forgotten', () => {
  const services = new ServiceTracker('IPv4');
  const slices = new EndpointTracker('IPv4', 'node-a');
  for (const isThere of [true, false]) {
    services.update('x/s', isThere ? service('x/s 10.96.0.1 80') : undefined);
    services.apply();
    slices.update('x/s1', isThere ? slice(ONE) : undefined);
    applyAll(slices);
  }
  expect([...services.keys()]).toEqual([]);
  expect(slices.endpointsOf('x/s').size).toBe(0);
});
