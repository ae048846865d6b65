/** deploy/manifests/: what the chart renders for some values, without what belongs to Helm. */
import { type Data, merge, REQUIRED, renderTexts } from './chart.ts';

export interface PlainManifest {
  readonly path: string;
  /** Of the chart, in words. */
  readonly title: string;
  readonly values: Data;
}

export const PLAIN_MANIFESTS: readonly PlainManifest[] = [
  { path: 'deploy/manifests/junction.yaml', title: 'with its default values', values: REQUIRED },
  {
    path: 'deploy/manifests/junction-ipvs.yaml',
    title: 'with config.mode=ipvs',
    values: merge(REQUIRED, { config: { mode: 'ipvs' } }),
  },
  {
    path: 'deploy/manifests/junction-nftables.yaml',
    title: 'with config.mode=nftables',
    values: merge(REQUIRED, { config: { mode: 'nftables' } }),
  },
];

/** Apart from the others: it needs the Prometheus operator, and goes with any of them. */
export const PLAIN_POD_MONITOR = 'deploy/manifests/junction-podmonitor.yaml';

const POD_MONITOR_HEADER = `# Metrics for the Prometheus operator, beside any of the other manifests here: the PodMonitor of the chart in
# deploy/chart/junction. It sets job="kube-proxy", so that kubernetes-mixin's alerts and dashboards for kube-proxy work.
#
# Before you apply this:
#   - metricsBindAddress in Junction's ConfigMap: "0.0.0.0:10249" in place of "127.0.0.1:10249", which only the node can
#     read. Anyone who reaches the node can read the metrics then
#   - labels: those that your Prometheus selects PodMonitors by, such as release: ..., if it does
#
# Made by: JUNCTION_WRITE_MANIFESTS=1 npx vitest run test/deploy/manifests.test.ts
`;

export function plainPodMonitor(): string {
  const metrics = { bindAddress: '0.0.0.0', podMonitor: { enabled: true } };
  return [POD_MONITOR_HEADER, plainDocument(renderTexts(merge(REQUIRED, { metrics })), 'podmonitor')].join(
    '---\n',
  );
}

/** The hook of `helm uninstall`, for those who do not use Helm. */
export const PLAIN_CLEANUP = 'deploy/migration/junction-cleanup.yaml';

const CLEANUP_HEADER = `# Back from Junction's nftables mode to kube-proxy: deletes Junction's tables on every node, and nothing of kube-proxy's.
#
#   kubectl apply -f deploy/migration/junction-cleanup.yaml
#   kubectl -n kube-system rollout status daemonset/junction-cleanup
#   kubectl delete -f deploy/migration/junction-cleanup.yaml
#
# On each node it waits until Junction has ended and kube-proxy is healthy at 127.0.0.1:10256 and has written its rules, so that
# services work all the time.
# Before you apply this: image, where you pushed yours, in place of localhost/junction (twice).
#
# Made by: JUNCTION_WRITE_MANIFESTS=1 npx vitest run test/deploy/manifests.test.ts
`;

const HOOK = /^ {2}annotations:\n(?: {4}(?:#|helm\.sh\/).*\n)+/m;

export function plainCleanup(): string {
  const texts = renderTexts(merge(REQUIRED, { config: { mode: 'nftables' } }));
  return [CLEANUP_HEADER, plainDocument(texts, 'cleanup').replace(HOOK, '')].join('---\n');
}

function header(title: string): string {
  return `# Junction for those who do not use Helm: the chart in deploy/chart/junction ${title}.
#
# Before you apply this:
#   - image: where you pushed yours, in place of localhost/junction (twice)
#   - KUBERNETES_SERVICE_HOST: the API server's own address, in place of api-server.example; not a cluster IP
#   - clusterCIDR: the addresses of your pods
#   - kube-proxy must not run on the same nodes; docs/deployment.md says how to move node by node, and back
#
# Made by: JUNCTION_WRITE_MANIFESTS=1 npx vitest run test/deploy/manifests.test.ts
`;
}

const ORDER = ['serviceaccount', 'clusterrole', 'clusterrolebinding', 'configmap', 'daemonset'] as const;

const HELM_LABEL = /^\s+(helm\.sh\/chart|app\.kubernetes\.io\/(managed-by|instance)): .*\n/gm;
/** Without a Helm that writes the checksum, nothing would keep it right. */
const CHECKSUM = /^\s+annotations:\n\s+#.*\n\s+checksum\/config: .*\n/m;

export function plainManifest({ title, values }: PlainManifest): string {
  const texts = renderTexts(values);
  return [header(title), ...ORDER.map((name) => plainDocument(texts, name))].join('---\n');
}

export function plainDocument(texts: ReadonlyMap<string, string>, name: string): string {
  const text = texts.get(`${name}.yaml`);
  if (text === undefined) throw new Error(`no template ${name}.yaml`);
  const plain = text
    .replaceAll(HELM_LABEL, '')
    .replace(CHECKSUM, '')
    .replaceAll(/[ \t]+$/gm, '');
  return `${plain.trim()}\n`;
}
