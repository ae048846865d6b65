/** The rule file, checked by promtool; and each alert, with series for which it fires, and for which it does not. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, type TestContext } from 'vitest';
import { ALERTS } from '../../scripts/monitoring/alerts.ts';
import { ROOT } from './chart.ts';
import { ALERT_CASES, type AlertCases } from './prometheus/alertCases.ts';
import { requireTool } from './prometheus/tools.ts';

const RULES = join(ROOT, 'deploy/monitoring/junction-rules.yaml');
/** promtool makes a database for each case, and would wait for the disk each time. */
const MEMORY = '/dev/shm';

/** What it printed; where it fails, the error has it. */
function promtool(context: TestContext, ...args: readonly string[]): string {
  return execFileSync(requireTool('promtool', context), args, {
    encoding: 'utf8',
    stdio: 'pipe',
    env: { ...process.env, ...(existsSync(MEMORY) && { TMPDIR: MEMORY }) },
  });
}

function promtoolTests({ alert, at, step, fires, labels, says, quiet }: AlertCases): readonly object[] {
  const { severity, summary } = ALERTS.find(({ name }) => name === alert) ?? {};
  const firing = {
    exp_labels: { severity, ...labels },
    exp_annotations: { summary, description: says, runbook_url: `docs/runbooks.md#${alert.toLowerCase()}` },
  };
  return Object.entries({ 'it fires': fires, ...quiet }).map(([when, series]) => ({
    name: `${alert}: ${when}`,
    interval: step ?? '1m',
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    alert_rule_test: [{ eval_time: at, alertname: alert, exp_alerts: series === fires ? [firing] : [] }],
  }));
}

/** What promtool says of these cases, which have one step. */
function runCases(context: TestContext, cases: readonly AlertCases[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'junction-promtool-'));
  const file = join(folder, 'tests.json'); // promtool reads YAML, of which JSON is a part
  const evaluation_interval = cases[0]?.step ?? '1m';
  const tests = cases.flatMap(promtoolTests);
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

test.for([undefined, '30m'] as const)(
  'each alert fires when it should, with its text, and else not (step %s)',
  (step, context) => {
    expect(ALERT_CASES.map(({ alert }) => alert)).toEqual(ALERTS.map(({ name }) => name));
    expect(
      runCases(
        context,
        ALERT_CASES.filter((each) => each.step === step),
      ),
    ).toContain('SUCCESS');
  },
);

test('a case that is wrong is a failure', (context) => {
  const [first] = ALERT_CASES;
  if (!first) throw new Error('no cases');
  const wrong = { ...first, fires: { 'junction_build_info{job="kube-proxy"}': '1x30' } };
  expect(() => runCases(context, [wrong])).toThrow('FAILED');
});
