import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { at, listAt, objectOf, ROOT, readObjects, readText, readYaml, renderObjects } from './chart.ts';

const RULES = readYaml('deploy/chart/junction/files/rbac-rules.yaml');
/** An event that was recorded is patched when it happens again; other recorders fall back to update. */
const VERBS = { events: ['create', 'patch', 'update'], others: ['list', 'watch'] };

/** What the program has paths of the API for, as `GROUP/RESOURCE`. Commands ask with the credentials of whoever types them. */
function askedFor(): readonly string[] {
  const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' });
  const paths = files
    .filter((name) => name.endsWith('.ts') && !/^(?:cli|kubectl)\//.test(name))
    .flatMap((name) => [
      ...readFileSync(join(ROOT, 'src', name), 'utf8').matchAll(/['"`](\/apis?\/[^'"`\n]+)/g),
    ])
    .map(([, path = '']) => path.replaceAll(/\$\{[^}]*\}/g, 'any'));
  const resources = paths.map((path) => {
    const match = /^\/(?:api|apis\/([^/]+))\/v\d\w*\/(?:namespaces\/any\/)?([a-z]+)$/.exec(path);
    if (!match) throw new Error(`${path} is no path of the API`);
    return `${match[1] ?? ''}/${match[2]}`;
  });
  return [...new Set(resources)].sort();
}

test('the rules allow what the program does, and nothing more', () => {
  const allowed = (RULES as readonly unknown[]).flatMap((rule) =>
    listAt(rule, 'resources').map((resource) => {
      expect(at(rule, 'verbs')).toEqual(resource === 'events' ? VERBS.events : VERBS.others);
      return `${listAt(rule, 'apiGroups').join()}/${String(resource)}`;
    }),
  );
  expect(allowed.sort()).toEqual(askedFor());
  expect(JSON.stringify(RULES)).not.toMatch(/\*|secrets|pods|configmaps|"get"|"delete/);
});

test('chart and plain manifests have these rules, and no role besides; the token is given to the pod alone', () => {
  for (const objects of [renderObjects(), readObjects(readText('deploy/manifests/junction.yaml'))]) {
    expect(at(objectOf(objects, 'ClusterRole'), 'rules')).toEqual(RULES);
    expect(objects.filter(({ kind }) => /Role(?:Binding)?$/.test(String(kind)))).toHaveLength(2);
    expect(at(objectOf(objects, 'ServiceAccount'), 'automountServiceAccountToken')).toBe(false);
  }
});
