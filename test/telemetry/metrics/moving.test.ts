/** No metric stands still because nobody tells it anything. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { FAULTS } from '../../../src/faults.ts';
import { HealthcheckMetrics } from '../../../src/telemetry/metrics/componentMetrics.ts';
import { JunctionMetrics } from '../../../src/telemetry/metrics/junctionMetrics.ts';
import { registerProxyMetrics } from '../../../src/telemetry/metrics/proxyMetrics.ts';
import { Registry } from '../../../src/telemetry/metrics/instruments.ts';
import { RestClientMetrics } from '../../../src/telemetry/metrics/restClientMetrics.ts';

const PUT_TOGETHER = /^(proxy_(healthz|livez)_total|sync_(full|partial)_proxy_rules_duration_seconds)$/;

const SOURCE = fileURLToPath(new URL('../../../src', import.meta.url));

function sourceFiles(): readonly string[] {
  return readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.startsWith('metrics/'))
    .map((path) => readFileSync(join(SOURCE, path), 'utf8'));
}

describe('whatever a metric is told', () => {
  const code = sourceFiles().join('\n');

  test.each([
    ['JunctionMetrics', JunctionMetrics],
    ['RestClientMetrics', RestClientMetrics],
    ['HealthcheckMetrics', HealthcheckMetrics],
  ])('every method of %s is called', (_, type) => {
    const methods = Object.getOwnPropertyNames(type.prototype).filter((name) => name !== 'constructor');
    expect(methods.length).toBeGreaterThan(0);
    expect(methods.filter((name) => !new RegExp(`\\.${name}\\(`).test(code))).toEqual([]);
  });

  test.each(['iptables', 'ipvs', 'nftables'] as const)('every metric of the mode %s is reported', (mode) => {
    const names = Object.keys(registerProxyMetrics(new Registry(), mode));
    // Some are reported under a name that is put together from parts.
    const isReported = (name: string): boolean =>
      code.includes(`metrics.${name}`) || code.includes(`'${name}'`) || PUT_TOGETHER.test(name);
    expect(names.filter((name) => !isReported(name))).toEqual([]);
  });

  test("every metric of Junction's own table is reported", () => {
    const names = Object.keys(new JunctionMetrics(new Registry()).table);
    expect(names.filter((name) => !code.includes(`.table.${name}`))).toEqual([]);
  });

  test('every fault is counted somewhere', () => {
    const isCounted = (fault: string): boolean => new RegExp(`countFault\\([^;]*'${fault}'`).test(code);
    expect(FAULTS.filter((fault) => !isCounted(fault))).toEqual([]);
  });
});
