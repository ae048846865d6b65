import { describe, expect, test } from 'vitest';
import { type ServiceChange, ServiceTracker } from '../../src/model/serviceTracker.ts';
import { service } from '../plan/given.ts';

/** Plays `+ service`, `- ns/name` lines and prints what the next sync is told. */
function play(tracker: ServiceTracker, ...lines: readonly string[]): readonly string[] {
  for (const line of lines) {
    const text = line.slice(2);
    if (line.startsWith('+')) tracker.update(text.split(' ')[0] ?? '', service(text));
    else tracker.update(text, undefined);
  }
  return printChanges(tracker.apply());
}

function printChanges(changes: ReadonlyMap<string, ServiceChange>): readonly string[] {
  return [...changes].map(
    ([key, { previous, current }]) =>
      `${key}: ${previous.map((port) => port.port).join(',')} -> ${current.map((port) => port.port).join(',')}`,
  );
}

const WEB = '+ shop/web 10.96.0.1 80';

describe('between two syncs', () => {
  const table: readonly (readonly [string, readonly string[], readonly string[]])[] = [
    ['an addition', [WEB], ['shop/web:  -> 80']],
    ['an addition and its deletion cancel', [WEB, '- shop/web'], []],
    ['deleting what was never there', ['- shop/web'], []],
    [
      'several changes fold',
      [WEB, '+ shop/web 10.96.0.1 81', '+ shop/web 10.96.0.1 82'],
      ['shop/web:  -> 82'],
    ],
    [
      'services in their own rows',
      [WEB, '+ shop/db 10.96.0.2 5432'],
      ['shop/web:  -> 80', 'shop/db:  -> 5432'],
    ],
    ['a service of the other family', ['+ shop/web fd00::1 80'], []],
  ];
  test.each(table)('%s', (_, lines, expected) => {
    expect(play(new ServiceTracker('IPv4'), ...lines)).toEqual(expected);
  });
});

describe('after a sync', () => {
  const table: readonly (readonly [string, readonly string[], readonly string[]])[] = [
    ['nothing new', [], []],
    ['the same again', [WEB], []],
    ['a change that is taken back', ['+ shop/web 10.96.0.1 81', WEB], []],
    ['a deletion that is taken back', ['- shop/web', WEB], []],
    ['a change of what a proxy does not use', [`${WEB} hc=12345`], []],
    ['a change', ['+ shop/web 10.96.0.1 81'], ['shop/web: 80 -> 81']],
    ['a change and deletion', ['+ shop/web 10.96.0.1 81', '- shop/web'], ['shop/web: 80 -> ']],
    ['it leaves this family', ['+ shop/web fd00::1 80'], ['shop/web: 80 -> ']],
    ['ports come and go', ['+ shop/web 10.96.0.1 a:80 b:81'], ['shop/web: 80 -> 80,81']],
  ];
  test.each(table)('%s', (_, lines, expected) => {
    const tracker = new ServiceTracker('IPv4');
    play(tracker, WEB);
    expect(play(tracker, ...lines)).toEqual(expected);
  });

  test('a deleted service is forgotten', () => {
    const tracker = new ServiceTracker('IPv4');
    play(tracker, WEB);
    play(tracker, '- shop/web');
    expect([...tracker.keys()]).toEqual([]);
    expect(tracker.portsOf('shop/web')).toEqual([]);
  });
});

test('an update answers whether anything is pending at all', () => {
  const tracker = new ServiceTracker('IPv4');
  expect(tracker.update('a/b', undefined)).toBe(false);
  expect(tracker.update('a/b', service('a/b 10.0.0.1 80'))).toBe(true);
  expect(tracker.update('c/d', undefined)).toBe(true);
  expect(tracker.update('a/b', undefined)).toBe(false);
  expect(tracker.pendingCount).toBe(0);
});
