import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { serviceQuestions } from '../../page/src/views/services/batches.ts';
import { differingLines, withChanges } from '../../page/src/views/services/changes.ts';
import { cellsOf, lineNormalizer, readLine, type ServiceLine } from '../../page/src/views/services/line.ts';
import { SERVICE_COLUMNS, serviceLine } from '../../src/explain/serviceTable.ts';
import type { ServiceRow } from '../../src/explain/types.ts';
import { objectKey } from '../../src/model/objects.ts';

function row(change: Partial<ServiceRow> = {}): ServiceRow {
  return {
    service: objectKey('shop', 'web'),
    type: 'LoadBalancer',
    clusterIPs: [],
    externalIPs: [],
    loadBalancerIPs: [],
    ports: ['80:30080/TCP', '53/UDP'],
    endpoints: { ready: 3, local: 1, all: 4 },
    externalTrafficPolicy: 'Local',
    internalTrafficPolicy: 'Cluster',
    state: 'ok',
    ...change,
  };
}

const line = (change: Partial<ServiceRow> = {}): ServiceLine => readLine(serviceLine(row(change)));
const named = (name: string, detail?: string): ServiceLine =>
  line({ service: objectKey('a', name), ...(detail !== undefined && { state: 'refused' as const, detail }) });

describe('a line of the table', () => {
  test('has what the row has', () => {
    const read = line({ affinitySeconds: 10_800, rate: 12.34, state: 'refused', detail: 'no\tspace: left' });
    expect(read).toMatchObject({
      service: 'shop/web',
      kind: { type: 'LoadBalancer', policy: 'external Local', state: 'refused', hasOtherIPs: false },
      ready: 3,
      local: 1,
      all: 4,
      rate: 12.3,
    });
    expect(cellsOf(read)).toEqual({
      clusterIPs: [],
      otherIPs: [],
      ports: ['80:30080/TCP', '53/UDP'],
      affinity: '10800s',
      rate: '12.3',
      detail: 'no space: left',
    });
  });

  test('is searched by name, address, port and node port', () => {
    const { text } = readLine(
      'shop/Web\tNodePort\t10.96.0.1,fd00::1\t203.0.113.9\t80:30080/TCP,53/UDP\t0/0\t\t\t\tok',
    );
    expect(text).toBe('shop/web 10.96.0.1,fd00::1 203.0.113.9 :80/tcp :30080/tcp :53/udp');
  });

  test('without a rate is below every rate', () => expect(line().rate).toBeLessThan(line({ rate: 0 }).rate));

  test('of a proxy with more columns, in another order', () => {
    const titles = [...SERVICE_COLUMNS].reverse();
    const normalize = lineNormalizer(['NEW', ...titles].join('\t'));
    const { line: text } = line({ rate: 2 });
    expect(normalize(['?', ...text.split('\t').reverse()].join('\t'))).toBe(text);
  });

  test('any text is read without a throw, and is shown as it came', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const read = readLine(text);
        expect(read.line).toBe(text);
        expect(text.startsWith(read.service)).toBe(true);
        expect([read.ready, read.local, read.all].every(Number.isFinite)).toBe(true);
        expect(cellsOf(read).detail).not.toContain('\t');
      }),
    );
  });

  test('any detail comes back on one line', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: 'binary' }), (detail) => {
        const read = line({ state: 'refused', detail });
        expect(read.kind.state).toBe('refused');
        expect(cellsOf(read).detail).toBe(detail.replaceAll(/[\t\r\n]+/g, ' '));
      }),
    );
  });
});

describe('changes of a table', () => {
  const names = fc.uniqueArray(fc.stringMatching(/^[a-e]{1,3}$/));
  const tableOf = (all: readonly string[]): readonly ServiceLine[] =>
    all.toSorted().map((name) => named(name));

  test('give what a fresh table has', () => {
    fc.assert(
      fc.property(names, names, names, (before, deleted, refused) => {
        const changes = new Map([
          ...deleted.map((name) => [`a/${name}`, undefined] as const),
          ...refused.map((name) => [`a/${name}`, named(name, 'new')] as const),
        ]);
        const fresh = new Map(tableOf(before).map((each) => [each.service, each]));
        for (const [service, after] of changes)
          if (after) fresh.set(service, after);
          else fresh.delete(service);
        const wanted = [...fresh.values()].sort((a, b) => (a.service < b.service ? -1 : 1));
        expect(withChanges(tableOf(before), changes).map((each) => each.line)).toEqual(
          wanted.map((each) => each.line),
        );
      }),
    );
  });

  test('nothing new: the same list, with the same lines', () => {
    const table = tableOf(['a', 'b', 'c']);
    expect(
      withChanges(
        table,
        new Map([
          ['a/b', named('b')],
          ['a/x', undefined],
        ]),
      ),
    ).toBe(table);
    const changed = withChanges(table, new Map([['a/b', named('b', 'why')]]));
    expect([changed[0], changed[2]]).toEqual([table[0], table[2]]);
    expect(changed[0]).toBe(table[0]);
  });

  test('are found between two tables', () => {
    const before = tableOf(['a', 'b', 'c', 'e']);
    const after = [named('a'), named('b', 'why'), named('d'), named('e')];
    expect(differingLines(before, after)).toEqual(['a/b', 'a/d']);
  });
});

test('questions about many services are short, and have each once', () => {
  const services = Array.from({ length: 500 }, (_, index) => `ns-${'x'.repeat(index % 60)}/web-${index}`);
  const questions = [...serviceQuestions(services)];
  expect(Math.max(...questions.map((question) => question.length))).toBeLessThan(4200);
  const asked = questions.flatMap((question) =>
    new URLSearchParams(question.split('?')[1]).getAll('service'),
  );
  expect(asked).toEqual(services);
  expect([...serviceQuestions([])]).toEqual([]);
});
