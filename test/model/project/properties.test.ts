import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { projectEndpointSlice, projectEndpoints } from '../../../src/model/project/endpointSlice.ts';
import { projectNode } from '../../../src/model/project/node.ts';
import { projectService } from '../../../src/model/project/service.ts';
import type { Projection } from '../../../src/text/cursor.ts';
import { printProblem } from '../../support/printProblem.ts';
import { quote } from '../../../src/text/printable.ts';

const PROJECTORS: readonly (readonly [string, (raw: unknown) => Projection<unknown>])[] = [
  ['Service', projectService],
  ['EndpointSlice', projectEndpointSlice],
  ['Endpoints', projectEndpoints],
  ['Node', projectNode],
];

const anything = fc.anything({
  withBigInt: true,
  withBoxedValues: true,
  withDate: true,
  withMap: true,
  withNullPrototype: true,
  withObjectString: true,
  withSet: true,
  withSparseArray: true,
  withTypedArray: true,
});

const FIELDS = [
  'metadata spec status name namespace labels annotations type clusterIP clusterIPs ipFamilies ports port protocol',
  'nodePort externalIPs loadBalancer ingress ip ipMode loadBalancerSourceRanges sessionAffinity subsets addresses',
  'sessionAffinityConfig clientIP timeoutSeconds endpoints conditions ready hints forZones nodeName addressType',
  'kubernetes.io/service-name __proto__ constructor toString podCIDRs',
]
  .join(' ')
  .split(' ');

/** Trees whose keys are the real ones, so that the readers go deep into them. */
const lookalike = fc.letrec((tie) => ({
  tree: fc.oneof(
    { depthSize: 'medium', withCrossShrink: true },
    fc.oneof(
      fc.constantFrom('IPv4', 'ClusterIP', 'web', '10.0.0.1', '10.0.0.0/8', 'TCP', 80, true, null),
      anything,
    ),
    fc.array(tie('tree'), { maxLength: 4 }),
    fc
      .array(fc.tuple(fc.constantFrom(...FIELDS), tie('tree')), { maxLength: 8 })
      .map((entries) => Object.fromEntries(entries)),
  ),
})).tree;

function messages(projection: Projection<unknown>): readonly string[] {
  if (projection.kind === 'invalid') return projection.problems.map(printProblem);
  return projection.kind === 'object' ? projection.warnings.map(printProblem) : [projection.reason];
}

describe.each(PROJECTORS)('%s', (_, projector) => {
  it('never throws, and its messages are short and printable', () => {
    fc.assert(
      fc.property(fc.oneof(anything, lookalike), (raw) => {
        for (const message of messages(projector(raw))) {
          expect(message.length).toBeLessThan(600);
          expect(message).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}]/u);
        }
      }),
    );
  });

  it('is not misled by what every object inherits', () => {
    const raw: unknown = JSON.parse(
      '{"__proto__": {"metadata": {"name": "web"}}, "metadata": {"__proto__": {"name": "web"}}}',
    );
    expect(projector(raw).kind).toBe('invalid');
    expect(projector({ metadata: Object.create({ name: 'web' }) as unknown }).kind).toBe('invalid');
  });
});

const INJECTIONS = [
  '"; -j DROP',
  'web\n-A INPUT -j ACCEPT',
  "web' --jump x",
  '$(reboot)',
  'a'.repeat(10_000),
  'web ',
  'wéb',
  '-web',
  '\u0000',
];

const safe = /^[A-Za-z0-9:./_-]*$/;

function strings(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(strings) : [];
}

function expectSafe(projection: Projection<unknown>): void {
  const reached = projection.kind === 'object' ? strings(projection.value) : [];
  expect(reached.filter((each) => !safe.test(each) || each.length > 253)).toEqual([]);
}

function servicesWith(text: string): readonly unknown[] {
  const metadata = { name: 'web', namespace: 'shop' };
  const spec = { clusterIP: '10.0.0.1', ports: [{ name: 'a', port: 80, protocol: 'TCP' }] };
  return [
    { metadata: { ...metadata, name: text }, spec },
    { metadata: { ...metadata, namespace: text }, spec },
    { metadata, spec: { ...spec, ports: [{ name: text, port: 80 }] } },
    { metadata, spec: { ...spec, ports: [{ name: 'a', port: text }] } },
    { metadata, spec: { ...spec, ports: [{ name: 'a', port: 80, protocol: text }] } },
    { metadata, spec: { ...spec, clusterIP: text } },
    { metadata, spec: { ...spec, type: text } },
    { metadata, spec: { ...spec, loadBalancerSourceRanges: [text.trim() === '' ? 'x' : text] } },
  ];
}

describe('hostile text', () => {
  it.each(INJECTIONS)('%j reaches no field of a service', (text) => {
    for (const raw of servicesWith(text)) expectSafe(projectService(raw));
  });

  it.each(INJECTIONS)('%j reaches no name of a slice', (text) => {
    const slice = {
      metadata: { name: 's', labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
    };
    const endpoint = { addresses: ['10.0.0.1'] };
    const all = [
      { ...slice, metadata: { ...slice.metadata, name: text } },
      { ...slice, metadata: { ...slice.metadata, labels: { 'kubernetes.io/service-name': text } } },
      { ...slice, ports: [{ name: text, port: 1 }] },
      { ...slice, endpoints: [{ ...endpoint, nodeName: text }] },
    ];
    for (const raw of all) expectSafe(projectEndpointSlice(raw));
    expect(projectNode({ metadata: { name: text } }).kind).toBe('invalid');
  });

  it('never reaches a value, wherever it stands', () => {
    expect.hasAssertions();
    const text = fc.oneof(
      fc.constantFrom(...INJECTIONS),
      fc.string(),
      fc.constantFrom('web', '10.0.0.1', 'TCP'),
    );
    const raw = fc.record({
      metadata: fc.record({ name: text, namespace: text }, { requiredKeys: [] }),
      spec: fc.record(
        {
          type: text,
          clusterIP: fc.oneof(text, fc.constant('10.0.0.1')),
          ports: fc.array(
            fc.record(
              { name: text, port: fc.oneof(text, fc.nat(70000)), protocol: text },
              { requiredKeys: [] },
            ),
          ),
          externalIPs: fc.array(text),
          loadBalancerSourceRanges: fc.array(text),
        },
        { requiredKeys: [] },
      ),
    });
    fc.assert(
      fc.property(raw, (object) => {
        expectSafe(projectService(object));
      }),
    );
  });
});

describe('quote', () => {
  it.each([
    ['web', '"web"'],
    ['a"b\\c', String.raw`"a\"b\\c"`],
    ['a\nb\u001b[31m', String.raw`"a\nb\u{1b}[31m"`],
    ['\u202eevil', String.raw`"\u{202e}evil"`],
    ['x'.repeat(100), `"${'x'.repeat(40)}…" (100 characters)`],
    [null, 'null'],
    [undefined, 'nothing'],
    [[1], 'a list'],
    [{}, 'a map'],
    [1.5, '1.5'],
    [10n, 'a very large number'],
    [Symbol('x'), 'a symbol'],
  ])('%# %s', (value, expected) => {
    expect(quote(value)).toBe(expected);
  });
});
