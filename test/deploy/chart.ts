/** The chart as Helm would render it. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, parseAllDocuments } from 'yaml';
import { Renderer } from './template/render.ts';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CHART = join(ROOT, 'deploy/chart/junction');

export type Data = { readonly [key: string]: unknown };

/** What the chart needs to be told; all else has a default. */
export const REQUIRED: Data = { apiServer: { host: 'api-server.example' } };

export function readText(...path: readonly string[]): string {
  return readFileSync(join(ROOT, ...path), 'utf8');
}

export function readYaml(path: string): unknown {
  return parse(readText(path)) as unknown;
}

export function isData(value: unknown): value is Data {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Maps are merged, all else is replaced; as Helm does it with `-f`. */
export function merge(base: Data, over: Data): Data {
  const merged = Object.entries(over).map(([key, value]) => {
    const before = base[key];
    return [key, isData(before) && isData(value) ? merge(before, value) : value] as const;
  });
  return { ...base, ...Object.fromEntries(merged) };
}

export function defaultValues(): Data {
  const values = readYaml('deploy/chart/junction/values.yaml');
  if (!isData(values)) throw new Error('values.yaml holds no map');
  return values;
}

/** Every template's text by its file name, for these values on top of the defaults. */
export function renderTexts(values: Data = REQUIRED): ReadonlyMap<string, string> {
  const names = readdirSync(join(CHART, 'templates')).sort();
  const path = (name: string): string => `junction/templates/${name}`;
  const renderer = new Renderer(
    new Map(names.map((name) => [path(name), readText('deploy/chart/junction/templates', name)])),
  );
  const chart = readYaml('deploy/chart/junction/Chart.yaml');
  if (!isData(chart)) throw new Error('Chart.yaml holds no map');
  const data = {
    Values: merge(defaultValues(), values),
    Chart: { Name: chart['name'], Version: chart['version'], AppVersion: chart['appVersion'] },
    Release: { Name: 'junction', Namespace: 'kube-system', Service: 'Helm' },
    Template: { BasePath: 'junction/templates' },
    Files: { Get: (name: string) => readText('deploy/chart/junction', name) },
  };
  const files = names.filter((name) => !name.startsWith('_'));
  return new Map(files.map((name) => [name, renderer.render(path(name), data)]));
}

/** What `helm install` makes. */
export function renderObjects(values: Data = REQUIRED): readonly Data[] {
  return renderAll(values).filter((object) => !isHook(object));
}

/** What `helm uninstall` makes. */
export function renderHooks(values: Data = REQUIRED): readonly Data[] {
  return renderAll(values).filter(isHook);
}

function renderAll(values: Data): readonly Data[] {
  const texts = [...renderTexts(values)].filter(([name]) => name.endsWith('.yaml'));
  return texts.flatMap(([, text]) => readObjects(text));
}

function isHook({ metadata }: Data): boolean {
  const annotations = isData(metadata) ? metadata['annotations'] : undefined;
  return isData(annotations) && 'helm.sh/hook' in annotations;
}

export function readObjects(text: string): readonly Data[] {
  return parseAllDocuments(text).flatMap((document) => {
    if (document.errors.length > 0) throw new Error(document.errors.join('\n'));
    const value: unknown = document.toJS();
    if (value === null) return [];
    if (!isData(value)) throw new Error('a document that is no object');
    return [value];
  });
}

export function objectOf(objects: readonly Data[], kind: string): Data {
  const found = objects.filter((object) => object['kind'] === kind);
  if (found.length !== 1 || !found[0]) throw new Error(`${found.length} objects of kind ${kind}`);
  return found[0];
}

/** `at(object, 'spec', 'containers', 0)`; what is not there is an error. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce((from, key) => {
    const inner: unknown = Array.isArray(from) ? from[Number(key)] : isData(from) ? from[key] : undefined;
    if (inner === undefined) throw new Error(`nothing at ${path.join('.')} (${key})`);
    return inner;
  }, value);
}

export function listAt(value: unknown, ...path: readonly (string | number)[]): readonly unknown[] {
  const list = at(value, ...path);
  if (!Array.isArray(list)) throw new Error(`no list at ${path.join('.')}`);
  return list;
}

export const POD = ['spec', 'template', 'spec'] as const;

export function podOf(objects: readonly Data[]): unknown {
  return at(objectOf(objects, 'DaemonSet'), ...POD);
}

/** The configuration file, as the ConfigMap has it. */
export function configText(objects: readonly Data[]): string {
  const maps = objects.filter(({ data }) => isData(data) && 'config.conf' in data);
  return String(at(objectOf(maps, 'ConfigMap'), 'data', 'config.conf'));
}
