/** The alerts as a rule file of Prometheus, and as a table for docs. */
import { stringify } from 'yaml';
import { type Alert, ALERTS, expressionOf } from './alerts.ts';
import { type Catalogue, readCatalogue } from './catalogue.ts';
import { problemsOf, withMatchers } from './promql.ts';

/** What the chart replaces by its values. */
const JOB = 'job="kube-proxy"';
const RUNBOOKS = 'docs/runbooks.md';

const HEADER = `# Alerts about Junction, beside kubernetes-mixin's about kube-proxy. For Prometheus itself: name this file under rule_files.
# For the Prometheus operator: metrics.prometheusRule.enabled of the chart, or deploy/manifests/junction-prometheusrule.yaml.
# They select ${JOB}, which our PodMonitor sets. What each means: ${RUNBOOKS}.
# Made by: node scripts/docs.mjs
`;

export async function ruleFile(): Promise<string> {
  return HEADER + (await chartRules());
}

export async function chartRules(): Promise<string> {
  const catalogue = await readCatalogue();
  const rules = ALERTS.map((alert) => ruleOf(catalogue, alert));
  return stringify({ groups: [{ name: 'junction', rules }] }, { lineWidth: 0 });
}

export function ruleOf(catalogue: Catalogue, alert: Alert): object {
  const { name, severity, summary, description } = alert;
  const expr = withMatchers(catalogue, expressionOf(alert), JOB);
  const problems = problemsOf(catalogue, expr);
  if (problems.length > 0) throw new Error(`alert ${name}: ${problems.join('; ')}`);
  const annotations = { summary, description, runbook_url: `${RUNBOOKS}#${name.toLowerCase()}` };
  return { alert: name, expr, for: alert.for, labels: { severity }, annotations };
}

/** With the names as links to what to do. */
export function alertTable(): string {
  const rows = ALERTS.map(({ name, severity, for: pending, meaning, firstLook }) =>
    [
      `[${name}](runbooks.md#${name.toLowerCase()})`,
      severity,
      pending === '0m' ? 'at once' : pending,
      meaning,
      firstLook,
    ]
      .map((cell) => cell.replaceAll('|', '\\|'))
      .join(' | '),
  );
  return `| alert | severity | for | meaning | first look |\n| --- | --- | --- | --- | --- |\n${rows.map((row) => `| ${row} |\n`).join('')}`;
}
