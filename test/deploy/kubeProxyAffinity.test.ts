/** deploy/migration/*.gotemplate: patches for kube-proxy's DaemonSet that leave its own affinity in force. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { at, type Data, isData, readText } from './chart.ts';
import { Renderer } from './template/render.ts';

interface Expression {
  readonly key: string;
  readonly operator: 'Exists' | 'DoesNotExist' | 'In';
  readonly values?: readonly string[];
}
interface Term {
  readonly matchExpressions?: readonly Expression[];
  readonly matchFields?: readonly Expression[];
}
type Labels = Readonly<Record<string, string>>;

const OURS: Expression = { key: 'service-proxy', operator: 'DoesNotExist' };
const AFFINITY = ['spec', 'template', 'spec', 'affinity'] as const;
const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';

function daemonSet(affinity?: Data): Data {
  const spec = { hostNetwork: true, ...(affinity && { affinity }) };
  return { metadata: { name: 'kube-proxy', generation: 7 }, spec: { template: { spec } } };
}

const renderer = new Renderer(
  new Map(
    ['exclude', 'include'].map((name) => [name, readText(`deploy/migration/${name}-kube-proxy.gotemplate`)]),
  ),
  { allowsMissing: true },
);

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly value?: unknown;
}

/** As the API server applies a JSON patch (RFC 6902); it keeps no empty list. */
function patched(name: 'exclude' | 'include', object: Data, to = object): Data {
  const copy = structuredClone(to);
  for (const operation of JSON.parse(renderer.render(name, object)) as readonly Operation[])
    apply(copy, operation);
  return JSON.parse(
    JSON.stringify(copy, (_, value: unknown) =>
      Array.isArray(value) && value.length === 0 ? undefined : value,
    ),
  ) as Data;
}

function apply(object: Data, { op, path, value }: Operation): void {
  const keys = path.split('/').slice(1);
  const last = keys.pop() ?? '';
  const holder = at(object, ...keys) as Record<string, unknown>;
  if (op === 'test') expect([path, holder[last]]).toEqual([path, value]);
  else if (op === 'add' && Array.isArray(holder) && last === '-') holder.push(value);
  else if (op === 'add' && !(last in holder)) holder[last] = value;
  else if (op === 'remove' && Array.isArray(holder)) holder.splice(Number(last), 1);
  else if (op === 'remove' && last in holder) delete holder[last];
  else throw new Error(`${op} ${path}: cannot be done`);
}

/** As the scheduler has it: terms are alternatives, and an empty term matches nothing. */
function admits(object: Data, node: string, labels: Labels): boolean {
  const pod = at(object, 'spec', 'template', 'spec') as {
    readonly affinity?: { readonly nodeAffinity?: Data };
  };
  const required = pod.affinity?.nodeAffinity?.[REQUIRED];
  if (!isData(required)) return true;
  return (required['nodeSelectorTerms'] as readonly Term[]).some(
    ({ matchExpressions = [], matchFields = [] }) =>
      matchExpressions.length + matchFields.length > 0 &&
      matchExpressions.every((each) => holds(each, labels[each.key])) &&
      matchFields.every((each) => holds(each, node)),
  );
}

function holds({ operator, values = [] }: Expression, value: string | undefined): boolean {
  if (operator === 'In') return value !== undefined && values.includes(value);
  return (value !== undefined) === (operator === 'Exists');
}

const expression = fc.constantFrom<Expression>(
  { key: 'a', operator: 'Exists' },
  { key: 'a', operator: 'DoesNotExist' },
  { key: 'b', operator: 'In', values: ['x', 'y'] },
);
const term: fc.Arbitrary<Term> = fc.record(
  {
    matchExpressions: fc.array(expression, { minLength: 1, maxLength: 3 }),
    matchFields: fc.constant([{ key: 'metadata.name', operator: 'In', values: ['n1'] }] as const),
  },
  { requiredKeys: [] },
);
const some = { minLength: 1, maxLength: 3 };
const nodeAffinity = fc
  .record(
    {
      [REQUIRED]: fc.record({ nodeSelectorTerms: fc.array(term, some) }),
      preferredDuringSchedulingIgnoredDuringExecution: fc.constant([{ weight: 1 }]),
    },
    { requiredKeys: [] },
  )
  .filter((each) => Object.keys(each).length > 0);
const daemonSets = fc
  .option(fc.record({ nodeAffinity, podAntiAffinity: fc.constant({ a: 1 }) }, { requiredKeys: [] }), {
    nil: undefined,
  })
  .map((affinity) => daemonSet(affinity && Object.keys(affinity).length > 0 ? affinity : undefined));
const labels: fc.Arbitrary<Labels> = fc.record(
  { a: fc.constant(''), b: fc.constantFrom('x', 'z'), 'service-proxy': fc.constantFrom('none', 'junction') },
  { requiredKeys: [] },
);

test('whatever affinity kube-proxy has, it then also leaves the labelled nodes, and no other', () => {
  fc.assert(
    fc.property(daemonSets, labels, fc.constantFrom('n1', 'n2'), (before, of, node) => {
      const excluded = patched('exclude', before);
      expect(admits(excluded, node, of)).toBe(admits(before, node, of) && of['service-proxy'] === undefined);
    }),
  );
});

test('the way back leaves exactly what was there, and both do nothing the second time', () => {
  fc.assert(
    fc.property(daemonSets, (before) => {
      const excluded = patched('exclude', before);
      expect(patched('exclude', excluded)).toEqual(excluded);
      expect(patched('include', excluded)).toEqual(before);
      expect(patched('include', before)).toEqual(before);
    }),
  );
});

test('what was added in between stays; a DaemonSet that changed meanwhile is not patched', () => {
  const terms = (...matchExpressions: readonly Expression[]): Data =>
    daemonSet({ nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: [{ matchExpressions }] } } });
  const other: Expression = { key: 'a', operator: 'Exists' };
  expect(at(patched('include', terms(OURS, other)), ...AFFINITY)).toEqual(at(terms(other), ...AFFINITY));
  const later = { ...daemonSet(), metadata: { name: 'kube-proxy', generation: 8 } };
  expect(() => patched('exclude', daemonSet(), later)).toThrow('/metadata/generation');
});
