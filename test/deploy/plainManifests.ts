/** deploy/manifests/ and deploy/migration/: what the chart renders for some values, without what belongs to Helm. */
import { Document, isMap, isSeq, parseDocument, type YAMLMap } from 'yaml';
import { type Data, merge, REQUIRED, renderTexts } from './chart.ts';

const MADE_BY = '# Made by: npx vitest run test/deploy/manifests.test.ts -u\n';
const CORE = ['serviceaccount', 'clusterrole', 'clusterrolebinding', 'configmap', 'daemonset'];
/** On the node: config.conf and kubeconfig.conf. */
export const STATIC_POD_FOLDER = '/etc/kubernetes/junction';

const core = (
  title: string,
): string => `# Junction for those who do not use Helm: the chart in deploy/chart/junction ${title}.
#
# Before you apply this:
#   - image: where you pushed yours, in place of localhost/junction (twice)
#   - KUBERNETES_SERVICE_HOST: the API server's own address, in place of api-server.example; not a cluster IP
#   - clusterCIDR: the addresses of your pods
#   - kube-proxy must not run on the same nodes; docs/deployment.md says how to move node by node, and back
#
`;

/** By their paths. */
export const PLAIN_MANIFESTS: Readonly<Record<string, string>> = {
  'deploy/manifests/junction.yaml': plain(core('with its default values'), CORE),
  'deploy/manifests/junction-ipvs.yaml': plain(core('with config.mode=ipvs'), CORE, {
    config: { mode: 'ipvs' },
  }),
  'deploy/manifests/junction-nftables.yaml': plain(core('with config.mode=nftables'), CORE, {
    config: { mode: 'nftables' },
  }),
  'deploy/manifests/junction-podmonitor.yaml': plain(
    `# Metrics for the Prometheus operator, beside any of the other manifests here: the PodMonitor of the chart in
# deploy/chart/junction. It sets job="kube-proxy", so that kubernetes-mixin's alerts and dashboards for kube-proxy work.
#
# Before you apply this:
#   - metricsBindAddress in Junction's ConfigMap: "0.0.0.0:10249" in place of "127.0.0.1:10249", which only the node can
#     read. Anyone who reaches the node can read the metrics then
#   - labels: those that your Prometheus selects PodMonitors by, such as release: ..., if it does
#
`,
    ['podmonitor'],
    { metrics: { bindAddress: '0.0.0.0', podMonitor: { enabled: true } } },
  ),
  'deploy/manifests/junction-prometheusrule.yaml': plain(
    `# Alerts for the Prometheus operator, beside any of the other manifests here: deploy/monitoring/junction-rules.yaml as an
# object. What each means: docs/runbooks.md.
#
# Before you apply this:
#   - labels: those that your Prometheus selects PrometheusRules by, such as release: ..., if it does
#   - job="kube-proxy": what our PodMonitor sets; another, where your targets have another
#
`,
    ['prometheusrule'],
    { metrics: { prometheusRule: { enabled: true } } },
  ),
  'deploy/manifests/junction-dashboard.yaml': plain(
    `# The dashboard in deploy/monitoring/junction-dashboard.json, for the sidecar of Grafana's chart. Without one: import that file.
#
# Before you apply this:
#   - namespace: Grafana's, where its sidecar looks into no other
#
`,
    ['dashboard'],
    { metrics: { dashboard: { enabled: true } } },
  ),
  'deploy/migration/junction-cleanup.yaml': plain(
    `# Back from Junction's nftables mode to kube-proxy: deletes Junction's tables on every node, and nothing of kube-proxy's.
#
#   kubectl apply -f deploy/migration/junction-cleanup.yaml
#   kubectl -n kube-system rollout status daemonset/junction-cleanup
#   kubectl delete -f deploy/migration/junction-cleanup.yaml
#
# On each node it waits until Junction has ended and kube-proxy is healthy at 127.0.0.1:10256 and has written its rules, so that
# services work all the time.
# Before you apply this: image, where you pushed yours, in place of localhost/junction (twice).
#
`,
    ['cleanup'],
    { config: { mode: 'nftables' } },
  ),
  'deploy/manifests/junction-static-pod.yaml': staticPod(),
};

function plain(header: string, names: readonly string[], values: Data = {}): string {
  const texts = renderTexts(merge(REQUIRED, values));
  return [header + MADE_BY, ...names.map((name) => withoutHelm(texts.get(`${name}.yaml`) ?? ''))].join(
    '---\n',
  );
}

/** Without labels of Helm; without its hook; and without the checksum, which nothing else would keep right. */
function withoutHelm(text: string): string {
  const rest = text
    .replaceAll(/^\s+(helm\.sh\/chart|app\.kubernetes\.io\/(managed-by|instance)): .*\n/gm, '')
    .replace(/^\s+annotations:\n\s+#.*\n\s+checksum\/config: .*\n/m, '')
    .replace(/^ {2}annotations:\n(?: {4}(?:#|helm\.sh\/).*\n)+/m, '')
    .replaceAll(/[ \t]+$/gm, '');
  return `${rest.trim()}\n`;
}

/** The pod of the DaemonSet, with its configuration and its kubeconfig from the node. */
function staticPod(): string {
  const daemonSet = parseDocument(renderTexts({ existingConfigMap: 'junction' }).get('daemonset.yaml') ?? '');
  const spec = mapAt(daemonSet, 'spec', 'template', 'spec');
  // Static pods may name no object of the API, and nobody schedules them.
  for (const key of ['serviceAccountName', 'automountServiceAccountToken', 'affinity', 'nodeSelector'])
    spec.delete(key);
  const volumes = spec.get('volumes', true);
  if (!isSeq(volumes)) throw new Error('the pod has no volumes');
  const index = volumes.items.findIndex((item) => isMap(item) && item.get('name') === 'config');
  if (index < 0) throw new Error('the pod has no configuration');
  const folder = { path: STATIC_POD_FOLDER, type: 'Directory' };
  volumes.items[index] = daemonSet.createNode({ name: 'config', hostPath: folder });
  const labels = mapAt(daemonSet, 'spec', 'selector', 'matchLabels').toJSON() as unknown;
  const metadata = { name: 'junction', namespace: 'kube-system', labels };
  const pod = new Document({ apiVersion: 'v1', kind: 'Pod', metadata });
  pod.set('spec', spec);
  const header = `# Junction as a static pod, for /etc/kubernetes/manifests of one node: the pod of the chart in deploy/chart/junction, with its
# configuration and its kubeconfig from the node. docs/recipes/static-pod.md says how to make both, and how to go back.
#
# Before you copy this to the node:
#   - image: where you pushed yours, in place of localhost/junction (twice); or import the image on the node under that name
#   - ${STATIC_POD_FOLDER}/config.conf and kubeconfig.conf are there
#   - kube-proxy does not run on this node
#
${MADE_BY}`;
  return header + pod.toString({ lineWidth: 0, flowCollectionPadding: false }).replaceAll(/[ \t]+$/gm, '');
}

function mapAt(document: Document.Parsed, ...path: readonly string[]): YAMLMap {
  const node = document.getIn(path, true);
  if (!isMap(node)) throw new Error(`no map at ${path.join('.')}`);
  return node;
}
