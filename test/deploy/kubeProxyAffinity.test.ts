/** deploy/migration/*.gotemplate: patches for kube-proxy's DaemonSet that leave its own affinity in force. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Data, isData, readText } from './chart.ts';
import { applyJsonPatch, readJsonPatch } from './jsonPatch.ts';
import { Renderer } from './template/evaluate.ts';
import { parseTemplate } from './template/parse.ts';

type Labels = Readonly<Record<string, string>>;
interface Expression {
  readonly key: string;
  readonly operator: 'Exists' | 'DoesNotExist' | 'In';
  readonly values?: readonly string[];
}
interface Term {
  readonly matchExpressions?: readonly Expression[];
  readonly matchFields?: readonly Expression[];
}
interface Affinity {
  readonly nodeAffinity?: {
    readonly requiredDuringSchedulingIgnoredDuringExecution?: { readonly nodeSelectorTerms: readonly Term[] };
    readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly Data[];
  };
  readonly podAntiAffinity?: Data;
}

const OURS: Expression = { key: 'service-proxy', operator: 'DoesNotExist' };

function daemonSet(affinity?: Affinity): Data {
  const spec = { hostNetwork: true, ...(affinity && { affinity }) };
  return { metadata: { name: 'kube-proxy', generation: 7 }, spec: { template: { spec } } };
}

const NAMES = ['exclude', 'include'] as const;
const templates = NAMES.map(
  (name) => [name, parseTemplate(readText(`deploy/migration/${name}-kube-proxy.gotemplate`))] as const,
);
const renderer = new Renderer(new Map(templates), { allowsMissing: true });

function patched(name: (typeof NAMES)[number], object: Data): Data {
  return applyJsonPatch(object, readJsonPatch(renderer.render(name, object)));
}

function affinityOf(object: Data): Affinity | undefined {
  const spec = isData(object['spec']) ? object['spec']['template'] : undefined;
  const pod = isData(spec) ? spec['spec'] : undefined;
  return isData(pod) ? (pod['affinity'] as Affinity | undefined) : undefined;
}

/** As the scheduler has it: terms are alternatives, and an empty term matches nothing. */
function admits(affinity: Affinity | undefined, node: string, labels: Labels): boolean {
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (!required) return true;
  return required.nodeSelectorTerms.some(({ matchExpressions = [], matchFields = [] }) => {
    if (matchExpressions.length + matchFields.length === 0) return false;
    return (
      matchExpressions.every((each) => holds(each, labels[each.key])) &&
      matchFields.every((each) => holds(each, node))
    );
  });
}

function holds({ operator, values = [] }: Expression, value: string | undefined): boolean {
  if (operator === 'Exists') return value !== undefined;
  if (operator === 'DoesNotExist') return value === undefined;
  return value !== undefined && values.includes(value);
}

const some = fc.constantFrom<Expression>(
  { key: 'a', operator: 'Exists' },
  { key: 'a', operator: 'DoesNotExist' },
  { key: 'b', operator: 'In', values: ['x', 'y'] },
);
const byName: Expression = { key: 'metadata.name', operator: 'In', values: ['n1'] };
const term: fc.Arbitrary<Term> = fc
  .record({ expressions: fc.array(some, { maxLength: 3 }), isByName: fc.boolean() })
  .map(({ expressions, isByName }) => ({
    ...(expressions.length > 0 && { matchExpressions: expressions }),
    ...(isByName && { matchFields: [byName] }),
  }));
const preferred = [{ weight: 1, preference: { matchExpressions: [OURS] } }];
const affinities: fc.Arbitrary<Affinity | undefined> = fc
  .record({
    terms: fc.array(term, { maxLength: 3 }),
    prefers: fc.boolean(),
    keepsApart: fc.boolean(),
  })
  .map(({ terms, prefers, keepsApart }) => {
    const nodeAffinity = {
      ...(terms.length > 0 && {
        requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms },
      }),
      ...(prefers && { preferredDuringSchedulingIgnoredDuringExecution: preferred }),
    };
    const affinity = {
      ...(Object.keys(nodeAffinity).length > 0 && { nodeAffinity }),
      ...(keepsApart && { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [] } }),
    };
    return Object.keys(affinity).length > 0 ? affinity : undefined;
  });
const labels = fc.record(
  { a: fc.constant(''), b: fc.constantFrom('x', 'z'), 'service-proxy': fc.constantFrom('none', 'junction') },
  { requiredKeys: [] },
);

describe('whatever affinity kube-proxy has', () => {
  test('it then also leaves the labelled nodes, and no other node is gained or lost', () => {
    fc.assert(
      fc.property(affinities, labels, fc.constantFrom('n1', 'n2'), (affinity, of, node) => {
        const excluded = affinityOf(patched('exclude', daemonSet(affinity)));
        expect(admits(excluded, node, of)).toBe(
          admits(affinity, node, of) && of['service-proxy'] === undefined,
        );
      }),
    );
  });

  test('the way back leaves exactly what was there, and both do nothing the second time', () => {
    fc.assert(
      fc.property(affinities, (affinity) => {
        const before = daemonSet(affinity);
        const excluded = patched('exclude', before);
        expect(patched('exclude', excluded)).toEqual(excluded);
        const back = patched('include', excluded);
        expect(back).toEqual(before);
        expect(patched('include', back)).toEqual(before);
      }),
    );
  });
});

test('kubeadm’s DaemonSet has none, and gets one', () => {
  expect(affinityOf(patched('exclude', daemonSet()))).toEqual({
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [OURS] }] },
    },
  });
});

test('what was added in between stays', () => {
  const other: Expression = { key: 'a', operator: 'Exists' };
  const terms = (...of: readonly Expression[]): Affinity => ({
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: of }] },
    },
  });
  expect(affinityOf(patched('include', daemonSet(terms(OURS, other))))).toEqual(terms(other));
});

test('a DaemonSet that changed meanwhile is not patched', () => {
  const patch = readJsonPatch(renderer.render('exclude', daemonSet()));
  const later = { ...daemonSet(), metadata: { name: 'kube-proxy', generation: 8 } };
  expect(() => applyJsonPatch(later, patch)).toThrow('test of /metadata/generation');
});
