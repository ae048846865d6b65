import { describe, expect, test } from 'vitest';
import { Counter, Gauge, Histogram, Registry } from '../../../src/telemetry/metrics/instruments.ts';
import { printNumber } from '../../../src/telemetry/metrics/exposition.ts';
import { parseExposition } from './parse.ts';

test.each([
  [0, '0'],
  [-0, '0'],
  [1, '1'],
  [-3, '-3'],
  [0.25, '0.25'],
  [16.384, '16.384'],
  [999_999, '999999'],
  [1_000_000, '1e+06'],
  [1_234_567, '1.234567e+06'],
  [1_794_713_732.624_368_2, '1.7947137326243682e+09'],
  [0.0001, '0.0001'],
  [0.000_099, '9.9e-05'],
  [1e-9, '1e-09'],
  [1e100, '1e+100'],
  [Number.POSITIVE_INFINITY, '+Inf'],
  [Number.NEGATIVE_INFINITY, '-Inf'],
  [Number.NaN, 'NaN'],
])('%d prints as %s', (value, expected) => expect(printNumber(value)).toBe(expected));

describe('what is shown', () => {
  test('nothing of a metric with labels that nobody has used', async () => {
    const registry = new Registry();
    registry.add(new Counter({ name: 'a_total', help: 'a', labels: ['x'] }));
    registry.add(new Gauge({ name: 'b', help: 'b', labels: ['x'] }));
    registry.add(new Histogram({ name: 'c', help: 'c', labels: ['x'], buckets: [1] }));
    expect(await registry.print()).toBe('');
  });

  test('zero of one without labels', async () => {
    const registry = new Registry();
    registry.add(new Gauge({ name: 'b', help: 'later' }));
    registry.add(new Counter({ name: 'a_total', help: 'first' }));
    expect(await registry.print()).toBe(
      '# HELP a_total first\n# TYPE a_total counter\na_total 0\n# HELP b later\n# TYPE b gauge\nb 0\n',
    );
  });

  test('labels by name, series by value', async () => {
    const registry = new Registry();
    const gauge = registry.add(new Gauge({ name: 'g', help: 'g', labels: ['table', 'ip_family'] }));
    gauge.set({ table: 'nat', ip_family: 'IPv6' }, 1);
    gauge.set({ table: 'nat', ip_family: 'IPv4' }, 2);
    gauge.set({ table: 'filter', ip_family: 'IPv6' }, 3);
    gauge.set({ table: 'nat', ip_family: 'IPv6' }, 4);
    expect(await registry.print()).toBe(
      '# HELP g g\n# TYPE g gauge\ng{ip_family="IPv4",table="nat"} 2\ng{ip_family="IPv6",table="filter"} 3\ng{ip_family="IPv6",table="nat"} 4\n',
    );
  });

  test('a histogram: its buckets hold all that is below', async () => {
    const registry = new Registry();
    const histogram = registry.add(new Histogram({ name: 'h', help: 'h', labels: ['f'], buckets: [0.5, 1] }));
    for (const value of [0.25, 0.5, 0.75, 1, 8]) histogram.observe({ f: 'x' }, value);
    expect(await registry.print()).toBe(
      `# HELP h h\n# TYPE h histogram\n${[
        'h_bucket{f="x",le="0.5"} 2',
        'h_bucket{f="x",le="1"} 4',
        'h_bucket{f="x",le="+Inf"} 5',
        'h_sum{f="x"} 10.5',
        'h_count{f="x"} 5',
      ].join('\n')}\n`,
    );
  });

  test('odd text is escaped, and reads back', async () => {
    const registry = new Registry();
    const value = 'a "quoted" \\ back\nslash, {brace}';
    registry.add(new Counter({ name: 'c', help: 'two\nlines \\', labels: ['l'] })).add({ l: value });
    const text = await registry.print();
    expect(text).toContain('# HELP c two\\nlines \\\\\n');
    expect(parseExposition(text)[0]?.samples[0]?.labels).toEqual([['l', value]]);
  });
});
