/** deploy/manifests/: what the chart renders for some values, without what belongs to Helm. */
import { type Data, merge, REQUIRED, renderTexts } from './chart.ts';

interface PlainManifest {
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
  const documents = ORDER.map((name) => {
    const text = texts.get(`${name}.yaml`);
    if (text === undefined) throw new Error(`no template ${name}.yaml`);
    const plain = text
      .replaceAll(HELM_LABEL, '')
      .replace(CHECKSUM, '')
      .replaceAll(/[ \t]+$/gm, '');
    return `${plain.trim()}\n`;
  });
  return [header(title), ...documents].join('---\n');
}
