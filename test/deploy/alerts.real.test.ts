/** The rule file, checked by promtool; and each alert, with series for which it fires, and for which it does not. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test, type TestContext } from 'vitest';
import { ALERTS } from '../../scripts/monitoring/alerts.ts';
import { ROOT } from './chart.ts';
import { ALERT_CASES, type AlertCase } from './prometheus/alertCases.ts';
import { requireTool } from './prometheus/tools.ts';

const RULES = join(ROOT, 'deploy/monitoring/junction-rules.yaml');

const MEMORY = '/dev/shm';

/** What it printed; where it fails, the error has it. */
function promtool(context: TestContext, ...args: readonly string[]): string {
  return execFileSync(requireTool('promtool', context), args, {
    encoding: 'utf8',
    stdio: 'pipe',
    // It makes a database for each case, and would wait for the disk each time.
    env: { ...process.env, ...(existsSync(MEMORY) && { TMPDIR: MEMORY }) },
  });
}

function expectedOf({ alert, fires }: AlertCase): readonly object[] {
  if (!fires) return [];
  const { severity, summary } = ALERTS.find(({ name }) => name === alert) ?? {};
  const { description } = fires;
  const exp_annotations = { summary, description, runbook_url: `docs/runbooks.md#${alert.toLowerCase()}` };
  return [{ exp_labels: { severity, ...fires.labels }, exp_annotations }];
}

function promtoolTest(each: AlertCase): object {
  const { alert, when, series, at, step = '1m' } = each;
  return {
    name: `${alert}: ${when}`,
    interval: step,
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    alert_rule_test: [{ eval_time: at, alertname: alert, exp_alerts: expectedOf(each) }],
  };
}

/** What promtool says of these cases, which have one step. */
function runCases(context: TestContext, cases: readonly AlertCase[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'junction-promtool-'));
  const file = join(folder, 'tests.json'); // promtool reads YAML, of which JSON is a part
  const evaluation_interval = cases[0]?.step ?? '1m';
  const tests = cases.map(promtoolTest);
  try {
    writeFileSync(file, JSON.stringify({ rule_files: [RULES], evaluation_interval, tests }));
    return promtool(context, 'test', 'rules', file);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('promtool takes the rule file', (context) => {
  expect(promtool(context, 'check', 'rules', RULES)).toContain(`SUCCESS: ${ALERTS.length} rules found`);
});

describe('promtool runs the rules', () => {
  test('every alert has a case in which it fires, and one in which it does not', () => {
    const has = (isFiring: boolean): readonly string[] =>
      ALERTS.filter(({ name }) =>
        ALERT_CASES.some((each) => each.alert === name && (each.fires !== undefined) === isFiring),
      ).map(({ name }) => name);
    const all = ALERTS.map(({ name }) => name);
    expect([has(true), has(false)]).toEqual([all, all]);
  });

  test.for([undefined, '30m'] as const)(
    'and each fires when it should, with its text, and else not',
    (step, context) => {
      const cases = ALERT_CASES.filter((each) => each.step === step);
      expect(cases.length).toBeGreaterThan(1);
      expect(runCases(context, cases)).toContain('SUCCESS');
    },
  );

  test('a case that is wrong is a failure', (context) => {
    const [firing] = ALERT_CASES;
    if (!firing) throw new Error('no cases');
    const series = { 'junction_build_info{job="kube-proxy"}': '1x30' };
    expect(() => runCases(context, [{ ...firing, series }])).toThrow('FAILED');
  });
});
