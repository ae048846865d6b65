import { readFileSync } from 'node:fs';
import { SLOW_TEXTS } from '../../support/slowYaml.ts';
import { describe, expect, it } from 'vitest';
import { parseManifests } from '../../../src/sources/manifests/store.ts';
import { printSourceProblem } from '../../../src/sources/source.ts';

function lines(text: string): readonly string[] {
  return parseManifests(text, 'shop.yaml').problems.map(printSourceProblem);
}

const LABEL = 'at most 63 lower-case letters, digits and "-", with a letter or digit at both ends';
const PORT = 'a whole number from 1 to 65535';

describe('a market as people write it', () => {
  const manifests = parseManifests(
    readFileSync(new URL('fixtures/market.yaml', import.meta.url), 'utf8'),
    'market.yaml',
  );

  it('has no problems', () => {
    expect(manifests.problems).toEqual([]);
  });

  it('is read whole', () => {
    expect(manifests.services.map(({ name }) => name)).toEqual(['stall', 'scale']);
    expect(manifests.slices.map(({ name }) => name)).toEqual(['stall-k2x9p', 'endpoints-scale-0-ipv4']);
    expect(manifests.nodes.map(({ name }) => name)).toEqual(['oak']);
    expect(manifests.services[0]).toMatchObject({
      clusterIPs: { IPv4: '10.97.0.10', IPv6: 'fd00:97::10' },
      loadBalancerIPs: ['203.0.113.10'],
      createdAt: Date.UTC(2026, 1, 3, 4, 5, 6),
    });
  });

  it('names what it leaves alone', () => {
    expect(manifests.ignored).toEqual([
      { object: 'Service market/ledger', where: 'market.yaml:76:1', reason: 'it is headless' },
    ]);
  });
});

describe('where a problem is', () => {
  it.each<[what: string, text: string, expected: readonly string[]]>([
    [
      'a value',
      'kind: Service\nmetadata:\n  name: web\nspec:\n  clusterIP: 10.0.0.1\n  ports:\n    - name: http\n      port: 70000\n',
      [
        `shop.yaml:8:13: error: Service default/web: spec.ports[0].port 70000 is out of range (expected ${PORT})`,
      ],
    ],
    [
      'a value in flow style',
      'kind: Service\nmetadata: {name: web}\nspec: {clusterIP: 10.0.0.1, ports: [{port: 80, protocol: tcp}]}\n',
      [
        'shop.yaml:3:58: error: Service default/web: spec.ports[0].protocol "tcp" is not known (expected TCP, UDP or SCTP)',
      ],
    ],
    [
      'a missing field, at its parent',
      'kind: Service\nmetadata:\n  namespace: shop\nspec:\n  clusterIP: 10.0.0.1\n  ports:\n  - port: 80\n',
      [`shop.yaml:2:1: error: Service: metadata.name is missing (expected ${LABEL})`],
    ],
    [
      'a missing field of a list item',
      'kind: Service\nmetadata: {name: web}\nspec:\n  clusterIP: 10.0.0.1\n  ports:\n  - name: a\n',
      [`shop.yaml:6:5: error: Service default/web: spec.ports[0].port is missing (expected ${PORT})`],
    ],
    [
      'an empty field, at its key',
      'kind: Service\nmetadata:\n  name:\n',
      [`shop.yaml:3:3: error: Service: metadata.name is missing (expected ${LABEL})`],
    ],
    [
      'a map where text should be, at its key',
      'kind: Service\nmetadata:\n  name: web\nspec:\n  clusterIP:\n    a: b\n',
      ['shop.yaml:5:3: error: Service default/web: spec.clusterIP a map is not text (expected text)'],
    ],
    [
      'the third document, after comments and blank lines',
      '# one\n---\n# two\n\n---\nkind: Service\nmetadata: {name: Web}\n',
      [`shop.yaml:7:18: error: Service: metadata.name "Web" is not a valid name (expected ${LABEL})`],
    ],
    [
      'an item of a list',
      'kind: List\nitems:\n- kind: Node\n  metadata: {name: n}\n- kind: Node\n  metadata: {name: N}\n',
      [
        'shop.yaml:6:20: error: Node: metadata.name "N" is not a valid name (expected at most 253 lower-case letters, digits, "-" and ".", with a letter or digit around each ".")',
      ],
    ],
    [
      'a warning',
      'kind: EndpointSlice\nmetadata: {name: a, labels: {kubernetes.io/service-name: a}}\naddressType: IPv4\nendpoints:\n- addresses: [x]\n',
      [
        'shop.yaml:5:15: warning: EndpointSlice default/a: endpoints[0].addresses[0] "x" is not an IP address (expected an IP address)',
      ],
    ],
    [
      'what an alias stands for',
      'kind: Service\nmetadata: {name: web}\nx: &ports [{port: 0}]\nspec: {clusterIP: 10.0.0.1, ports: *ports}\n',
      [
        `shop.yaml:3:19: error: Service default/web: spec.ports[0].port 0 is out of range (expected ${PORT})`,
        'shop.yaml:3:1: warning: Service default/web: unknown field "x"',
      ],
    ],
    [
      'JSON',
      '{\n  "kind": "Service",\n  "metadata": {"name": "web"},\n  "spec": {\n    "clusterIP": "10.0.0.1",\n    "ports": [{"x": "}]", "port": 80}, {"name": "b", "port": -5}]\n  }\n}\n',
      [
        `shop.yaml:6:62: warning: Service default/web: spec.ports[1].port -5 is out of range; this port is left out (expected ${PORT})`,
        'shop.yaml:6:16: warning: Service default/web: unknown field "spec.ports[0].x"',
      ],
    ],
    [
      'a syntax error',
      'kind: Service\nmetadata: {name: web\nspec: {}\n',
      ['shop.yaml:3:1: error: Flow map in block collection must be sufficiently indented and end with a }'],
    ],
    [
      'a key that is there twice',
      'kind: Service\nkind: Node\n',
      ['shop.yaml:2:1: error: key "kind" is already set in this map (expected each key once)'],
    ],
    [
      'two objects in one document',
      'apiVersion: v1\nkind: Service\napiVersion: v1\nkind: Node\n',
      [
        'shop.yaml:3:1: error: key "apiVersion" is already set in this map (expected each key once; is the line --- between two objects missing?)',
        'shop.yaml:4:1: error: key "kind" is already set in this map (expected each key once)',
      ],
    ],
    [
      'a key that is there twice in JSON',
      '{"kind": "Service",\n "kind": "Node"}',
      ['shop.yaml:2:2: error: key "kind" is already set in this map (expected each key once)'],
    ],
    [
      'an unknown alias',
      'kind: Service\nmetadata: *nothing\n',
      [
        'shop.yaml:2:11: error: this document cannot be read: Unresolved alias (the anchor must be set before the alias): nothing',
      ],
    ],
    [
      'text that is no object',
      'hello\n---\n- 1\n---\nkind: 7\n',
      [1, 3, 5].map(
        (line) =>
          `shop.yaml:${line === 3 ? '3:1' : `${line}:1`}: error: this is not a Kubernetes object (expected a map with apiVersion, kind and metadata)`,
      ),
    ],
    [
      'a list without items',
      'kind: ServiceList\napiVersion: v1\nitems: 3\n',
      ['shop.yaml:3:8: error: items is 3 (expected a list)'],
    ],
    [
      'a list in a list',
      'kind: List\nitems: [{kind: List}]\n',
      ['shop.yaml:2:9: error: this is a list inside a list (expected the objects themselves)'],
    ],
    [
      'the beta API',
      'apiVersion: discovery.k8s.io/v1beta1\nkind: EndpointSlice\nmetadata: {name: a}\n',
      [
        'shop.yaml:1:13: error: EndpointSlice default/a: apiVersion "discovery.k8s.io/v1beta1" is not served any more (expected discovery.k8s.io/v1)',
      ],
    ],
    [
      'the same object twice',
      'kind: Node\nmetadata: {name: n}\n---\nkind: Node\nmetadata: {name: n}\n',
      [
        'shop.yaml:4:1: warning: Node n: is also defined at shop.yaml:1:1, and that one is used (expected each object once)',
      ],
    ],
    ['nothing at all', '', []],
    ['comments only', '# a\n---\n# b\n---\n', []],
    [
      'Windows line ends',
      'kind: Node\r\nmetadata:\r\n  name: n\r\n---\r\nkind: 7\r\n',
      [
        'shop.yaml:5:1: error: this is not a Kubernetes object (expected a map with apiVersion, kind and metadata)',
      ],
    ],
    [
      'a directive',
      '%YAML 1.1\n---\nkind: Node\nmetadata: {name: n, creationTimestamp: 2026-01-01}\n---\nkind: Node\nmetadata: {name: 2}\n',
      ['shop.yaml:7:18: error: Node: metadata.name 2 is not text (expected text, in quotes)'],
    ],
  ])('%s', (_, text, expected) => {
    expect(lines(text)).toEqual(expected);
  });
});

describe('hostile texts', () => {
  it('an alias bomb is refused', () => {
    const levels = Array.from(
      { length: 12 },
      (_, level) => `l${level}: &l${level} [${`*l${level - 1},`.repeat(10)}]`,
    );
    const text = ['kind: Service', 'l: &l-1 [x]', ...levels].join('\n');
    expect(lines(text)).toEqual([
      'shop.yaml:8:22: error: this document cannot be read: its aliases stand for more than 1000000 values',
    ]);
  });

  it('deep nesting is refused', () => {
    expect(lines(`a: ${'['.repeat(100_000)}`)).toEqual([
      expect.stringMatching(/^shop\.yaml:1:\d+: .* nested more than 100 deep/),
    ]);
    expect(lines(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)).toHaveLength(1);
  });

  it('an object that holds itself is refused', () => {
    expect(lines('&self\nkind: List\nitems: [*self]\n')).toEqual([
      'shop.yaml:3:9: error: this document cannot be read: an alias stands inside of what it stands for',
    ]);
  });

  it.each(SLOW_TEXTS)('$name costs only its own document', ({ text, line }) => {
    const { nodes, problems } = parseManifests(`kind: Node\nmetadata: {name: n}\n---\n${text}`, 'shop.yaml');
    expect(nodes).toHaveLength(1);
    expect(problems[0]?.where).toMatch(new RegExp(`^shop\\.yaml:${line + 3}:`));
  });

  it('messages cannot write to the terminal', () => {
    for (const line of lines('kind: Node\nmetadata: {name: "\\e[31m\\n"}\n---\n"\\q": [\u001b[2J\n')) {
      expect(line).not.toMatch(/\p{Cc}/u);
    }
  });
});

describe('lists', () => {
  it.each([
    ['ServiceList', 'v1', 'metadata: {name: a}, spec: {clusterIP: 10.0.0.1, ports: [{port: 1}]}'],
    [
      'EndpointSliceList',
      'discovery.k8s.io/v1',
      'metadata: {name: a, labels: {kubernetes.io/service-name: a}}, addressType: IPv4',
    ],
    ['EndpointsList', 'v1', 'metadata: {name: a}, subsets: [{addresses: [{ip: 10.0.0.1}]}]'],
    ['NodeList', 'v1', 'metadata: {name: a}'],
  ])('%s needs no kind in its items', (kind, apiVersion, item) => {
    const { services, slices, nodes, problems } = parseManifests(
      `kind: ${kind}\napiVersion: ${apiVersion}\nitems: [{${item}}]\n`,
    );
    expect(problems).toEqual([]);
    expect(services.length + slices.length + nodes.length).toBe(1);
  });

  it('of other kinds are left alone', () => {
    const nothing = { services: [], slices: [], nodes: [], problems: [], ignored: [], places: new Map() };
    expect(parseManifests('kind: PodList\napiVersion: v1\nitems: [{}]\n')).toEqual(nothing);
  });
});

describe('several JSON texts in one file', () => {
  const json = (name: string): string => `{"kind": "Node",\n "metadata": {"name": "${name}"}}`;

  it('are read as one after the other, as jq prints them', () => {
    const { nodes, problems } = parseManifests(`${json('a')}\n${json('b')}${json('c')}\n\n`, 'shop.json');
    expect(nodes.map(({ name }) => name)).toEqual(['a', 'b', 'c']);
    expect(problems).toEqual([]);
  });

  it('have problems at their places', () => {
    expect(lines(`${json('a')}\n${json('B')}`)).toEqual([
      expect.stringMatching(/^shop\.yaml:4:23: error: Node: metadata\.name "B" is not a valid name/),
    ]);
    expect(lines(`${json('a')}\n{"kind": 1, "kind": 2}`)).toEqual([
      'shop.yaml:3:13: error: key "kind" is already set in this map (expected each key once)',
    ]);
  });

  it('of which one is cut off are none', () => {
    expect(lines(`${json('a')}\n{"kind": "Node"`)[0]).toMatch(/^shop\.yaml:3:\d+: error: /);
  });
});
