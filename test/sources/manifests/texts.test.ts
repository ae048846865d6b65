/** A manifest's text in; the objects in it, and what is wrong with it, out. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { parseManifests } from '../../../src/sources/manifests/source.ts';
import { printSourceProblem } from '../../../src/sources/source.ts';
import { SLOW_TEXTS } from '../../support/slowYaml.ts';

function lines(text: string): readonly string[] {
  return parseManifests(text, 'shop.yaml').problems.map(printSourceProblem);
}

/** Every object of a text, by kind and name. */
function objects(text: string): readonly string[] {
  const { services, slices, nodes } = parseManifests(text);
  return [...services, ...slices, ...nodes].map(({ name }) => name);
}

const SUBDOMAIN =
  'at most 253 lower-case letters, digits, "-" and ".", with a letter or digit around each "."';
const PORT = 'a whole number from 1 to 65535';
const WEB = 'kind: Service\nmetadata: {name: web}\n';
const NO_OBJECT =
  'error: this is not a Kubernetes object (expected a map with apiVersion, kind and metadata)';
const json = (name: string): string => `{"kind": "Node",\n "metadata": {"name": "${name}"}}`;

describe('a problem is told with the line of its object, the object, the field and the reason', () => {
  it.each<[what: string, text: string, expected: readonly string[]]>([
    [
      'an object that cannot be used',
      `# first\n${WEB}spec:\n  clusterIP: 10.0.0.1\n  ports:\n    - port: 70000\n`,
      [`2: error: Service default/web: spec.ports[0].port 70000 is out of range (expected ${PORT})`],
    ],
    ['Windows line ends', 'kind: Node\r\nmetadata:\r\n  name: n\r\n---\r\nkind: 7\r\n', [`5: ${NO_OBJECT}`]],
    [
      'an item of a list',
      'kind: List\nitems:\n- kind: Node\n  metadata: {name: n}\n- kind: Node\n  metadata: {name: N}\n',
      [`5: error: Node: metadata.name "N" is not a valid name (expected ${SUBDOMAIN})`],
    ],
    [
      'an item of a list in JSON',
      '{"kind": "List", "x": ["}"],\n "items": [\n{"kind": "Node", "metadata": {"name": "N"}}]}',
      [`3: error: Node: metadata.name "N" is not a valid name (expected ${SUBDOMAIN})`],
    ],
    [
      'two objects in one document',
      'apiVersion: v1\nkind: Service\napiVersion: v1\nkind: Node\n',
      [
        '3: error: key "apiVersion" is already set in this map (expected each key once, and --- between two objects)',
      ],
    ],
    [
      'an unknown alias',
      'kind: Service\nmetadata: *nothing\n',
      [
        '2: error: this document cannot be read: Unresolved alias (the anchor must be set before the alias): nothing',
      ],
    ],
    [
      'text that is no object',
      'hello\n---\n- 1\n---\nkind: 7\n',
      [1, 3, 5].map((line) => `${line}: ${NO_OBJECT}`),
    ],
    [
      'a list without items',
      'kind: ServiceList\napiVersion: v1\nitems: 3\n',
      ['1: error: items is 3 (expected a list)'],
    ],
    [
      'a list in a list',
      'kind: List\nitems: [{kind: List}]\n',
      ['2: error: this is a list inside a list (expected the objects themselves)'],
    ],
    [
      'the same object twice',
      'kind: Node\nmetadata: {name: n}\n---\nkind: Node\nmetadata: {name: n}\n',
      [
        '4: warning: Node n: is also defined at shop.yaml:1, and that one is used (expected each object once)',
      ],
    ],
    [
      'the second of several JSON texts',
      `${json('a')}\n${json('B')}`,
      [`3: error: Node: metadata.name "B" is not a valid name (expected ${SUBDOMAIN})`],
    ],
    ['JSON that is cut off', '{"kind":\n "Node"', ['2: error: Flow map must end with a }']],
    [
      'a large JSON that is cut off',
      `{"x": "${'x'.repeat(2_000_000)}"`,
      ['1: error: this document cannot be read: it is not JSON, or is cut off'],
    ],
    [
      'a directive',
      '%YAML 1.1\n---\nkind: Node\nmetadata: {name: n, creationTimestamp: 2026-01-01}\n---\nkind: Node\nmetadata: {name: 2}\n',
      ['6: error: Node: metadata.name 2 is not text (expected text, in quotes)'],
    ],
  ])('%s', (_, text, expected) => {
    expect(lines(text)).toEqual(expected.map((line) => `shop.yaml:${line}`));
  });
});

describe('nothing is told of', () => {
  it.each<[what: string, text: string, names: readonly string[]]>([
    ['nothing', '', []],
    ['comments', '# a\n---\n# b\n---\n', []],
    ['unknown fields', 'kind: Node\nmetadata: {name: n, lables: {}}\nspce: {}\n', ['n']],
    ['other kinds', 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n', []],
    ['lists of other kinds', 'kind: PodList\napiVersion: v1\nitems: [{}]\n', []],
    ["other groups' kinds", 'apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: web}\n', []],
    [
      'JSON texts one after the other, as jq prints them',
      `${json('a')}\n${json('b')}${json('c')}\n\n`,
      ['a', 'b', 'c'],
    ],
    [
      'ServiceList',
      'kind: ServiceList\napiVersion: v1\nitems: [{metadata: {name: a}, spec: {clusterIP: 10.0.0.1, ports: [{port: 1}]}}]\n',
      ['a'],
    ],
    [
      'EndpointsList',
      'kind: EndpointsList\napiVersion: v1\nitems: [{metadata: {name: a}, subsets: [{addresses: [{ip: 10.0.0.1}]}]}]\n',
      ['endpoints-a-0-ipv4'],
    ],
    ['a headless service', `${WEB}spec: {clusterIP: None, ports: [{port: 80}]}\n`, []],
    [
      'a List of several kinds',
      'kind: List\nitems: [{kind: Node, metadata: {name: a}}, {kind: Deployment}, {kind: Service, metadata: {name: b}, spec: {clusterIP: 10.0.0.1, ports: [{port: 1}]}}]\n',
      ['b', 'a'],
    ],
  ])('%s', (_, text, names) => {
    expect(lines(text)).toEqual([]);
    expect(objects(text)).toEqual(names);
  });
});

describe('hostile texts', () => {
  it.each<[what: string, text: string, expected: RegExp]>([
    [
      'an alias bomb',
      [
        'kind: Service',
        'l: &l-1 [x]',
        ...Array.from(
          { length: 12 },
          (_, level) => `l${level}: &l${level} [${`*l${level - 1},`.repeat(10)}]`,
        ),
      ].join('\n'),
      /^shop\.yaml:1: error: this document cannot be read: Excessive alias count/,
    ],
    ['deep nesting', `a: ${'['.repeat(100_000)}`, /^shop\.yaml:1: error: .* nested more than 100 deep/],
    [
      'deep nesting in JSON',
      `${'['.repeat(100_000)}${']'.repeat(100_000)}`,
      /^shop\.yaml:1: error: this is not a Kubernetes object/,
    ],
    [
      'an object that holds itself',
      '&self\nkind: List\nitems: [*self]\n',
      /^shop\.yaml:3: error: this is a list inside a list/,
    ],
    ...SLOW_TEXTS.map(({ name, text, line }): [string, string, RegExp] => [
      name,
      text,
      new RegExp(`^shop\\.yaml:${line}: error: `),
    ]),
  ])('%s costs only its own document', (_, text, expected) => {
    const { nodes, problems } = parseManifests(
      `${text}\n---\nkind: Node\nmetadata: {name: n}\n`,
      'shop.yaml',
    );
    expect(nodes).toHaveLength(1);
    expect(problems.map(printSourceProblem)).toEqual([expect.stringMatching(expected)]);
  });

  it('messages cannot write to the terminal', () => {
    const [named, ...others] = lines('kind: Node\nmetadata: {name: "\\e[31m\\n"}\n---\n"\\q": [\u001b[2J\n');
    expect(named).toContain('is not a valid name');
    for (const line of [named, ...others]) expect(line).not.toMatch(/\p{Cc}/u);
  });
});

const PIECES = [
  'kind: Service',
  'kind: List',
  'items:',
  '- ',
  '  ',
  '\n',
  '---',
  '...',
  'metadata:',
  '{name: web}',
  '[',
  ']',
  '{',
  '}',
  '"',
  "'",
  '&a ',
  '*a',
  '<<: ',
  '!!binary ',
  '|',
  '>',
  '? ',
  ': ',
  '#',
  '%YAML 1.1',
  '\t',
  '\u0000',
  '\uD800',
  '\u2028',
  '{"a": 1',
  '\r\n',
];

describe('any text', () => {
  it('is read without a throw, and every problem has a line', () => {
    const pieces = fc.array(fc.constantFrom(...PIECES), { maxLength: 30 }).map((each) => each.join(''));
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), pieces), (text) => {
        for (const line of lines(text)) {
          expect(line).toMatch(/^shop\.yaml:[1-9]\d*: (?:error|warning): /);
          expect(line).not.toMatch(/[\p{Cc}\p{Cs}]/u);
        }
      }),
    );
  });

  it('says the same as YAML and as JSON', () => {
    const port = fc.record({ name: fc.constantFrom('a', 'b', 'C'), port: fc.integer({ min: -1, max: 3 }) });
    const service = fc.record({
      kind: fc.constant('Service'),
      metadata: fc.record({ name: fc.constantFrom('web', 'Web', '"; -j DROP') }),
      spec: fc.record({
        clusterIP: fc.constantFrom('10.0.0.1', 'x', ''),
        ports: fc.array(port, { maxLength: 3 }),
      }),
    });
    fc.assert(
      fc.property(service, (raw) => {
        expect(parseManifests(JSON.stringify(raw))).toEqual(parseManifests(stringify(raw)));
      }),
    );
  });
});
