/** Alerts and dashboard for those without Helm, each a file beside the other manifests. */
import { merge, REQUIRED, renderTexts } from './chart.ts';
import { plainDocument } from './plainManifest.ts';

interface PlainMonitoring {
  readonly path: string;
  readonly kind: string;
  readonly text: () => string;
}

const MADE_BY = '# Made by: JUNCTION_WRITE_MANIFESTS=1 npx vitest run test/deploy/monitoring.test.ts\n';

const RULE_HEADER = `# Alerts for the Prometheus operator, beside any of the other manifests here: deploy/monitoring/junction-rules.yaml as an
# object. What each means: docs/runbooks.md.
#
# Before you apply this:
#   - labels: those that your Prometheus selects PrometheusRules by, such as release: ..., if it does
#   - job="kube-proxy": what our PodMonitor sets; another, where your targets have another
#
${MADE_BY}`;

const DASHBOARD_HEADER = `# The dashboard in deploy/monitoring/junction-dashboard.json, for the sidecar of Grafana's chart. Without one: import that file.
#
# Before you apply this:
#   - namespace: Grafana's, where its sidecar looks into no other
#
${MADE_BY}`;

const METRICS = { prometheusRule: { enabled: true }, dashboard: { enabled: true } };

function plain(header: string, template: string): string {
  const texts = renderTexts(merge(REQUIRED, { metrics: METRICS }));
  return `${header}---\n${plainDocument(texts, template)}`;
}

export const PLAIN_MONITORING: readonly PlainMonitoring[] = [
  {
    path: 'deploy/manifests/junction-prometheusrule.yaml',
    kind: 'PrometheusRule',
    text: () => plain(RULE_HEADER, 'prometheusrule'),
  },
  {
    path: 'deploy/manifests/junction-dashboard.yaml',
    kind: 'ConfigMap',
    text: () => plain(DASHBOARD_HEADER, 'dashboard'),
  },
];
