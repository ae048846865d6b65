import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { API_USE, type ApiUse, resourceOf } from './apiUse.ts';
import { at, objectOf, ROOT, readObjects, readText, readYaml, renderObjects } from './chart.ts';

const RULES = readYaml('deploy/chart/junction/files/rbac-rules.yaml');

/** One rule per group and set of verbs. */
function rulesFor(uses: readonly ApiUse[]): readonly unknown[] {
  const rules = new Map<string, { apiGroups: string[]; resources: string[]; verbs: readonly string[] }>();
  for (const { group, resource, verbs } of uses) {
    const key = `${group} ${verbs.join()}`;
    const rule = rules.get(key) ?? { apiGroups: [group], resources: [], verbs };
    rule.resources = [...rule.resources, resource].sort();
    rules.set(key, rule);
  }
  return [...rules.values()];
}

test('the rules allow what the program does, and nothing more', () => {
  expect(RULES).toEqual(rulesFor(API_USE));
});

test('the program has no other path of the API in it', () => {
  const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' });
  // Commands ask with the credentials of whoever types them.
  const isProxy = (name: string): boolean => !/^(?:cli|kubectl)\/|^sources\/api\/exec\.ts$/.test(name);
  const sources = files
    .filter((name) => name.endsWith('.ts') && isProxy(name))
    .map((name) => join(ROOT, 'src', name));
  const paths = sources.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/['"`](\/apis?\/(?:[^'"`\n$]|\$\{[^}]*\})+)['"`]/g)].map(
      ([, path = '']) => path.replaceAll(/\$\{[^}]*\}/g, 'any'),
    ),
  );
  const known = new Set(API_USE.map(({ group, resource }) => `${group}/${resource}`));
  const used = paths.map(resourceOf).map(({ group, resource }) => `${group}/${resource}`);
  expect(new Set(used)).toEqual(known);
});

test('chart and plain manifests have these rules, and no role besides', () => {
  for (const objects of [renderObjects(), readObjects(readText('deploy/manifests/junction.yaml'))]) {
    expect(at(objectOf(objects, 'ClusterRole'), 'rules')).toEqual(RULES);
    expect(objects.filter(({ kind }) => String(kind).endsWith('Role'))).toHaveLength(1);
    expect(objects.filter(({ kind }) => String(kind).endsWith('RoleBinding'))).toHaveLength(1);
  }
});

test('nothing is granted by a star, and nothing can be read that is secret', () => {
  expect(JSON.stringify(RULES)).not.toMatch(/\*|secrets|pods|configmaps|"get"|"delete/);
});

test('the token is given to the pod alone', () => {
  const objects = renderObjects();
  expect(at(objectOf(objects, 'ServiceAccount'), 'automountServiceAccountToken')).toBe(false);
  expect(at(objectOf(objects, 'DaemonSet'), 'spec', 'template', 'spec', 'automountServiceAccountToken')).toBe(
    true,
  );
});
