/** deploy/manifests/junction.yaml: what the chart renders, without what belongs to Helm. */
import { renderTexts } from './chart.ts';

const HEADER = `# Junction for those who do not use Helm: the chart in deploy/chart/junction with its default values.
#
# Before you apply this:
#   - image: where you pushed yours, in place of localhost/junction (twice)
#   - KUBERNETES_SERVICE_HOST: the API server's own address, in place of api-server.example; not a cluster IP
#   - clusterCIDR: the addresses of your pods
#   - kube-proxy must not run on the same nodes; docs/deployment.md says how to move node by node, and back
#
# Made by: JUNCTION_WRITE_MANIFESTS=1 npx vitest run test/deploy/manifests.test.ts
`;

const ORDER = ['serviceaccount', 'clusterrole', 'clusterrolebinding', 'configmap', 'daemonset'] as const;

const HELM_LABEL = /^\s+(helm\.sh\/chart|app\.kubernetes\.io\/(managed-by|instance)): .*\n/gm;
/** Without a Helm that writes the checksum, nothing would keep it right. */
const CHECKSUM = /^\s+annotations:\n\s+#.*\n\s+checksum\/config: .*\n/m;

export function plainManifest(): string {
  const texts = renderTexts();
  const documents = ORDER.map((name) => {
    const text = texts.get(`${name}.yaml`);
    if (text === undefined) throw new Error(`no template ${name}.yaml`);
    const plain = text
      .replaceAll(HELM_LABEL, '')
      .replace(CHECKSUM, '')
      .replaceAll(/[ \t]+$/gm, '');
    return `${plain.trim()}\n`;
  });
  return [HEADER, ...documents].join('---\n');
}
