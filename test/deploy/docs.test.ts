import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Data, defaultValues, isData, ROOT, readText } from './chart.ts';

const page = readText('docs/deployment.md');
/** Described as a whole: what is inside belongs to somebody else, or is up to the operator. */
const WHOLE = new Set([
  'config',
  'junction',
  'resources',
  'updateStrategy',
  'affinity',
  'metrics.dashboard.labels',
]);

function paths(values: Data, prefix = ''): readonly string[] {
  return Object.entries(values).flatMap(([key, value]) => {
    const path = prefix + key;
    return isData(value) && Object.keys(value).length > 0 && !WHOLE.has(path)
      ? paths(value, `${path}.`)
      : [path];
  });
}

/** As GitHub makes them. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\w -]/g, '')
    .replaceAll(' ', '-');
}

test('every value is in the table of values, and no other', () => {
  const table = page.slice(page.indexOf('## Values'));
  const described = table
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .flatMap((line) => [...(line.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name));
  expect(described.sort()).toEqual([...paths(defaultValues())].sort());
});

/** What the schema allows, down to where it lists no names. */
function schemaPaths(schema: unknown, prefix = ''): readonly string[] {
  const properties = isData(schema) ? schema['properties'] : undefined;
  if (!isData(properties)) return [];
  return Object.entries(properties).flatMap(([key, inner]) => {
    const path = prefix + key;
    const inside = WHOLE.has(path) ? [] : schemaPaths(inner, `${path}.`);
    return inside.length > 0 ? inside : [path];
  });
}

test('the schema knows the values that have a default, and no other', () => {
  const schema: unknown = JSON.parse(readText('deploy/chart/junction/values.schema.json'));
  const known = schemaPaths(schema).filter((path) => path !== 'global');
  expect([...known].sort()).toEqual([...paths(defaultValues())].sort());
});

test('every flag --set names a value that there is', () => {
  const known = paths(defaultValues());
  const set = [...page.matchAll(/--set '?([\w.-]+)=/g)].map(([, name]) => name ?? '');
  expect(set.length).toBeGreaterThan(5);
  const unknown = set.filter((name) => !known.some((path) => name === path || name.startsWith(`${path}.`)));
  expect(unknown).toEqual([]);
});

test('every file that the page names is there', () => {
  const named = [...page.matchAll(/\b(?:deploy|test|docs)\/[\w./-]+/g)].map(([path]) => path);
  const links = [...page.matchAll(/\]\(([^)#]+)\)/g)].map(([, path]) => join('docs', path ?? ''));
  expect([...named, ...links].filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test('every link within the page has its heading', () => {
  const headings = [...page.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) => anchorOf(title));
  const wanted = [...page.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor]) => anchor ?? '');
  expect(headings).toEqual(expect.arrayContaining(wanted));
});

test.each(['exclude', 'include'])('the command that %ss kube-proxy is the one of its template', (name) => {
  const command = /kubectl -n kube-system patch[^]*?gotemplate\)"/.exec(
    readText(`deploy/migration/${name}-kube-proxy.gotemplate`),
  );
  const words = (text: string): string => text.replaceAll(/\s+/g, ' ');
  expect(words(page)).toContain(words(command?.[0] ?? 'no command'));
  expect(page).toContain('--set nodeSelector.service-proxy=junction');
});
