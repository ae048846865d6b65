/** deploy/manifests/junction-static-pod.yaml: the pod of the chart's DaemonSet, without what a static pod may not have. */
import { Document, isMap, isSeq, parseDocument, type YAMLMap } from 'yaml';
import { renderTexts } from './chart.ts';

export const STATIC_POD = 'deploy/manifests/junction-static-pod.yaml';
/** On the node: config.conf and kubeconfig.conf. */
export const STATIC_POD_FOLDER = '/etc/kubernetes/junction';

const HEADER = `# Junction as a static pod, for /etc/kubernetes/manifests of one node: the pod of the chart in deploy/chart/junction, with its
# configuration and its kubeconfig from the node. docs/recipes/static-pod.md says how to make both, and how to go back.
#
# Before you copy this to the node:
#   - image: where you pushed yours, in place of localhost/junction (twice); or import the image on the node under that name
#   - ${STATIC_POD_FOLDER}/config.conf and kubeconfig.conf are there
#   - kube-proxy does not run on this node
#
# Made by: JUNCTION_WRITE_MANIFESTS=1 npx vitest run test/deploy/staticPod.test.ts
`;

/** Static pods may name no object of the API, and nobody schedules them. */
const NOT_FOR_STATIC_PODS = [
  'serviceAccountName',
  'automountServiceAccountToken',
  'affinity',
  'nodeSelector',
];

export function staticPod(): string {
  const text = renderTexts({ existingConfigMap: 'junction' }).get('daemonset.yaml');
  if (text === undefined) throw new Error('the chart renders no daemonset.yaml');
  const daemonSet = parseDocument(text);
  const spec = mapAt(daemonSet, 'spec', 'template', 'spec');
  for (const key of NOT_FOR_STATIC_PODS) spec.delete(key);
  const folder = { path: STATIC_POD_FOLDER, type: 'Directory' };
  replaceVolume(spec, 'config', daemonSet.createNode({ name: 'config', hostPath: folder }));
  const pod = new Document({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'junction',
      namespace: 'kube-system',
      labels: mapAt(daemonSet, 'spec', 'selector', 'matchLabels').toJSON() as unknown,
    },
  });
  pod.set('spec', spec);
  return HEADER + pod.toString({ lineWidth: 0, flowCollectionPadding: false }).replaceAll(/[ \t]+$/gm, '');
}

function mapAt(document: Document.Parsed, ...path: readonly string[]): YAMLMap {
  const node = document.getIn(path, true);
  if (!isMap(node)) throw new Error(`no map at ${path.join('.')}`);
  return node;
}

function replaceVolume(spec: YAMLMap, name: string, volume: unknown): void {
  const volumes = spec.get('volumes', true);
  if (!isSeq(volumes)) throw new Error('the pod has no volumes');
  const index = volumes.items.findIndex((item) => isMap(item) && item.get('name') === name);
  if (index < 0) throw new Error(`the pod has no volume ${name}`);
  volumes.items[index] = volume;
}
