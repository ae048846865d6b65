/** The rule file, checked by promtool; and each alert, with series for which it fires, and for which it does not. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test, type TestContext } from 'vitest';
import { ALERTS } from '../../scripts/monitoring/alerts.ts';
import { ROOT } from './chart.ts';
import { ALERT_CASES, type AlertCase } from './prometheus/alertCases.ts';
import { requireTool } from './prometheus/tools.ts';

const RULES = join(ROOT, 'deploy/monitoring/junction-rules.yaml');

/** What it printed; where it fails, the error has it. */
function promtool(context: TestContext, ...args: readonly string[]): string {
  return execFileSync(requireTool('promtool', context), args, { encoding: 'utf8', stdio: 'pipe' });
}

function expectedOf({ alert, fires }: AlertCase): readonly object[] {
  if (!fires) return [];
  const { severity, summary } = ALERTS.find(({ name }) => name === alert) ?? {};
  const { description } = fires;
  const exp_annotations = { summary, description, runbook_url: `docs/runbooks.md#${alert.toLowerCase()}` };
  return [{ exp_labels: { severity, ...fires.labels }, exp_annotations }];
}

function promtoolTest(each: AlertCase): object {
  const { alert, when, series, at } = each;
  return {
    name: `${alert}: ${when}`,
    interval: '1m',
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    alert_rule_test: [{ eval_time: at, alertname: alert, exp_alerts: expectedOf(each) }],
  };
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

  test('and each fires when it should, with its text, and else not', (context) => {
    const folder = mkdtempSync(join(tmpdir(), 'junction-promtool-'));
    try {
      const file = join(folder, 'tests.json'); // promtool reads YAML, of which JSON is a part
      const tests = ALERT_CASES.map(promtoolTest);
      writeFileSync(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: '1m', tests }));
      expect(promtool(context, 'test', 'rules', file)).toContain('SUCCESS');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('a case that is wrong is a failure', (context) => {
    const folder = mkdtempSync(join(tmpdir(), 'junction-promtool-'));
    try {
      const file = join(folder, 'tests.json');
      const [firing] = ALERT_CASES;
      if (!firing) throw new Error('no cases');
      const tests = [
        {
          ...promtoolTest(firing),
          input_series: [{ series: 'junction_build_info{job="kube-proxy"}', values: '1x30' }],
        },
      ];
      writeFileSync(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: '1m', tests }));
      expect(() => promtool(context, 'test', 'rules', file)).toThrow('FAILED');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
