/** Fields and kinds that Kubernetes does not know: where they are, what was meant, and what is no mistake. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseManifests } from '../../../src/sources/manifests/store.ts';
import { printSourceProblem } from '../../../src/sources/source.ts';

function lines(text: string, strict = false): readonly string[] {
  return parseManifests(text, 'shop.yaml', { strict }).problems.map(printSourceProblem);
}

const WEB = `apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  clusterIP: 10.96.0.1
  ports:
  - port: 80
    protcol: UDP
`;

describe('an unknown field', () => {
  it('is a warning at its key, with the field that was meant', () => {
    expect(lines(WEB)).toEqual([
      'shop.yaml:8:5: warning: Service shop/web: unknown field "spec.ports[0].protcol"; did you mean "protocol"?',
    ]);
    expect(parseManifests(WEB).services[0]?.ports).toMatchObject([{ port: 80, protocol: 'TCP' }]);
  });

  it('is an error with strict, and the object is not used', () => {
    expect(lines(WEB, true)).toEqual([
      'shop.yaml:8:5: error: Service shop/web: unknown field "spec.ports[0].protcol"; did you mean "protocol"?',
    ]);
    expect(parseManifests(WEB, 'x', { strict: true }).services).toEqual([]);
  });

  it('costs no other object with strict', () => {
    const other = '---\napiVersion: v1\nkind: Node\nmetadata: {name: n}\n';
    const { nodes, services } = parseManifests(WEB + other, 'x', { strict: true });
    expect([nodes.length, services.length]).toEqual([1, 0]);
  });

  it.each<[what: string, text: string, expected: readonly string[]]>([
    [
      'in the second document',
      `apiVersion: v1\nkind: Node\nmetadata: {name: n}\n---\n${WEB}`,
      [
        'shop.yaml:12:5: warning: Service shop/web: unknown field "spec.ports[0].protcol"; did you mean "protocol"?',
      ],
    ],
    [
      'in JSON',
      '{"apiVersion": "v1", "kind": "Node",\n "metadata": {"name": "n", "lables": {"a": "b"}}}',
      ['shop.yaml:2:28: warning: Node n: unknown field "metadata.lables"; did you mean "labels"?'],
    ],
    [
      'in an item of a List, and in the List',
      'apiVersion: v1\nkind: List\nitmes: []\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: n}\n  spec: {podCIDRS: []}\n',
      [
        'shop.yaml:3:1: warning: List: unknown field "itmes"; did you mean "items"?',
        'shop.yaml:8:10: warning: Node n: unknown field "spec.podCIDRS"; did you mean "podCIDRs"?',
      ],
    ],
    [
      'in an item of a typed list, which need not say its kind',
      'apiVersion: v1\nkind: NodeList\nitems:\n- metadata: {name: n, nam: x}\n',
      ['shop.yaml:4:23: warning: Node n: unknown field "metadata.nam"; did you mean "name"?'],
    ],
    [
      'in a slice, as the beta had it',
      'apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: a, labels: {kubernetes.io/service-name: a}}\naddressType: IPv4\nendpoints:\n- addresses: [10.0.0.1]\n  topology: {a: b}\n  conditions:\n    redy: true\n',
      [
        'shop.yaml:7:3: warning: EndpointSlice default/a: unknown field "endpoints[0].topology"',
        'shop.yaml:9:5: warning: EndpointSlice default/a: unknown field "endpoints[0].conditions.redy"; did you mean "ready"?',
      ],
    ],
    [
      'that stands in the wrong map',
      'apiVersion: v1\nkind: Service\nmetadata: {name: web}\nlabels: {a: b}\nspec: {clusterIP: 10.0.0.1, ports: [{port: 1}], nodePort: 30000}\n',
      [
        'shop.yaml:4:1: warning: Service default/web: unknown field "labels"; did you mean "metadata.labels"?',
        'shop.yaml:5:49: warning: Service default/web: unknown field "spec.nodePort"; did you mean "spec.ports[].nodePort"?',
      ],
    ],
    [
      'with another case, which an API server tells apart',
      'apiVersion: v1\nkind: Node\nmetadata: {name: n}\nSpec: {}\n',
      ['shop.yaml:4:1: warning: Node n: unknown field "Spec"; did you mean "spec"?'],
    ],
    [
      'that is no word, or would be a command to a terminal',
      'apiVersion: v1\nkind: Node\nmetadata: {name: n}\n8080: x\n"__proto__": {}\n"\\e[31m\\n": 1\n',
      [
        'shop.yaml:4:1: warning: Node n: unknown field "8080"',
        'shop.yaml:5:1: warning: Node n: unknown field "__proto__"',
        'shop.yaml:6:1: warning: Node n: unknown field "\\u{1b}[31m\\n"',
      ],
    ],
    [
      'without a value',
      'apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatsu:\n',
      ['shop.yaml:4:1: warning: Node n: unknown field "statsu"; did you mean "status"?'],
    ],
  ])('%s', (_, text, expected) => {
    expect(lines(text)).toEqual(expected);
  });

  it('many in one object are counted', () => {
    const fields = Array.from({ length: 60 }, (_, index) => `zz${index}qq: 1\n`).join('');
    const said = lines(`apiVersion: v1\nkind: Node\nmetadata: {name: n}\n${fields}`);
    expect(said).toHaveLength(51);
    expect(said.at(-1)).toBe('shop.yaml:1:1: warning: Node n: 10 more unknown fields');
  });

  it('many in one file are counted: a field that is newer than the table is in every object of a dump', () => {
    const nodes = Array.from({ length: 300 }, (_, index) => ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: `n${index}`, brandNew: 1 },
    }));
    const said = lines(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: nodes }));
    expect(said).toHaveLength(101);
    expect(said.at(-1)).toBe('shop.yaml: warning: has 200 more unknown fields and kinds');
  });
});

describe('what Kubernetes knows is no mistake', () => {
  // From the OpenAPI description of Kubernetes 1.36; the values mean nothing.
  const everyField: unknown = JSON.parse(
    readFileSync(new URL('fixtures/everyField.json', import.meta.url), 'utf8'),
  );

  it.each(Object.entries(everyField as object))('%s with every field there is', (_, object: unknown) => {
    expect(lines(JSON.stringify(object), true).filter((line) => line.includes('unknown field'))).toEqual([]);
  });

  it('maps with any keys', () => {
    const object = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name: 'n',
        labels: { protcol: 'x' },
        annotations: { protcol: 'x' },
        managedFields: [{ manager: 'm', fieldsV1: { 'f:spec': { 'k:{"port":80}': { '.': {} } } } }],
      },
      status: { capacity: { 'example.com/gpu': '1' }, allocatable: { cpu: 1 } },
    };
    expect(lines(JSON.stringify(object), true)).toEqual([]);
  });
});

describe('an unknown kind', () => {
  const inVersion = (kind: string, apiVersion?: string): string =>
    `${apiVersion === undefined ? '' : `apiVersion: ${apiVersion}\n`}kind: ${kind}\nmetadata: {name: x}\n`;

  it.each<[kind: string, apiVersion: string | undefined, expected: string]>([
    ['Servce', 'v1', '2:7: warning: no matches for kind "Servce" in version "v1"; did you mean "Service"?'],
    ['service', 'v1', '2:7: warning: no matches for kind "service" in version "v1"; did you mean "Service"?'],
    [
      'Services',
      'v1',
      '2:7: warning: no matches for kind "Services" in version "v1"; did you mean "Service"?',
    ],
    [
      'Endpoint',
      'v1',
      '2:7: warning: no matches for kind "Endpoint" in version "v1"; did you mean "Endpoints"?',
    ],
    ['list', 'v1', '2:7: warning: no matches for kind "list" in version "v1"; did you mean "List"?'],
    [
      'NodeLst',
      'v1',
      '2:7: warning: no matches for kind "NodeLst" in version "v1"; did you mean "NodeList"?',
    ],
    ['Nodes', undefined, '1:7: warning: no matches for kind "Nodes"; did you mean "Node"?'],
    [
      'EndpointSlices',
      'discovery.k8s.io/v1',
      '2:7: warning: no matches for kind "EndpointSlices" in version "discovery.k8s.io/v1"; did you mean "EndpointSlice"?',
    ],
    [
      'Service',
      'v1beta1',
      '1:13: warning: no matches for kind "Service" in version "v1beta1"; did you mean "v1"?',
    ],
    ['Service', 'V1', '1:13: warning: no matches for kind "Service" in version "V1"; did you mean "v1"?'],
    ['Service', '1', '1:13: warning: no matches for kind "Service" in version 1; did you mean "v1"?'],
    [
      'Service',
      'apps/v1',
      '1:13: warning: no matches for kind "Service" in version "apps/v1"; did you mean "v1"?',
    ],
    ['List', 'v2', '1:13: warning: no matches for kind "List" in version "v2"; did you mean "v1"?'],
    [
      'EndpointSlice',
      'v1',
      '1:13: warning: no matches for kind "EndpointSlice" in version "v1"; did you mean "discovery.k8s.io/v1"?',
    ],
    [
      'EndpointSlice',
      'discover.k8s.io/v1',
      '1:13: warning: no matches for kind "EndpointSlice" in version "discover.k8s.io/v1"; did you mean "discovery.k8s.io/v1"?',
    ],
    [
      'EndpointSliceList',
      'discovery.k8s.io/v1beta1',
      '1:13: warning: no matches for kind "EndpointSliceList" in version "discovery.k8s.io/v1beta1"; did you mean "discovery.k8s.io/v1"?',
    ],
  ])('%s in %s', (kind, apiVersion, expected) => {
    expect(lines(inVersion(kind, apiVersion))).toEqual([`shop.yaml:${expected}`]);
    expect(lines(inVersion(kind, apiVersion), true)).toEqual([
      `shop.yaml:${expected.replace('warning', 'error')}`,
    ]);
  });

  it.each([
    ['Deployment', 'apps/v1'],
    ['ConfigMap', 'v1'],
    ['Pod', 'v1'],
    ['PodList', 'v1'],
    ['ServiceAccount', 'v1'],
    ['ServiceCIDR', 'networking.k8s.io/v1'],
    ['ResourceSlice', 'resource.k8s.io/v1'],
    ['APIService', 'apiregistration.k8s.io/v1'],
    ['Config', 'v1'],
    ['Service', 'serving.knative.dev/v1'],
    ['Services', 'example.com/v1'],
    ['Node', 'longhorn.io/v1beta2'],
    ['NodeMetrics', 'metrics.k8s.io/v1beta1'],
    ['ServiceImport', 'multicluster.x-k8s.io/v1alpha1'],
    ['Kustomization', 'kustomize.config.k8s.io/v1beta1'],
  ])("%s in %s is somebody else's", (kind, apiVersion) => {
    expect(lines(inVersion(kind, apiVersion), true)).toEqual([]);
  });
});

it('strict wants an apiVersion, as kubectl does', () => {
  const text = 'kind: Node\nmetadata: {name: n}\n';
  expect(lines(text)).toEqual([]);
  expect(lines(text, true)).toEqual([
    'shop.yaml:1:1: error: Node n: apiVersion is not set; did you mean "v1"?',
  ]);
});
