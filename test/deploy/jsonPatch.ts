/** The operations of JSON Patch (RFC 6902) that our patches use, as the API server applies them. */
import { type Data, isData } from './chart.ts';

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly value?: unknown;
}

export function readJsonPatch(text: string): readonly Operation[] {
  const patch: unknown = JSON.parse(text);
  if (!Array.isArray(patch)) throw new Error('a JSON patch is a list');
  return patch.map((each: unknown) => {
    if (!isData(each) || typeof each['op'] !== 'string' || typeof each['path'] !== 'string')
      throw new Error(`${JSON.stringify(each)} is no operation`);
    return { op: each['op'], path: each['path'], value: each['value'] };
  });
}

export function applyJsonPatch(object: Data, patch: readonly Operation[]): Data {
  const copy = structuredClone(object);
  for (const operation of patch) applyOne(copy, operation);
  return withoutEmptyLists(copy);
}

function applyOne(object: Data, { op, path, value }: Operation): void {
  const keys = path.split('/').slice(1);
  const last = keys.pop() ?? '';
  const holder = keys.reduce<unknown>((from, key) => inside(from, key, path), object);
  if (Array.isArray(holder)) changeList(holder, last, { op, path, value });
  else if (isData(holder)) changeMap(holder, last, { op, path, value });
  else throw new Error(`${path}: there is nothing to change`);
}

function inside(from: unknown, key: string, path: string): unknown {
  const value: unknown = Array.isArray(from) ? from[Number(key)] : isData(from) ? from[key] : undefined;
  if (value === undefined) throw new Error(`${path}: there is no ${key}`);
  return value;
}

function changeMap(map: Record<string, unknown>, key: string, { op, path, value }: Operation): void {
  if (op === 'add') {
    map[key] = value;
    return;
  }
  if (!(key in map)) throw new Error(`${path}: there is no ${key}`);
  if (op === 'test' && JSON.stringify(map[key]) !== JSON.stringify(value))
    throw new Error(`test of ${path} failed`);
  if (op === 'remove') delete map[key];
}

function changeList(list: unknown[], key: string, { op, path, value }: Operation): void {
  if (op === 'add' && key === '-') list.push(value);
  else if (op === 'remove' && Number(key) < list.length) list.splice(Number(key), 1);
  else throw new Error(`${op} ${path}: not known here`);
}

/** The API server keeps no empty list. */
function withoutEmptyLists<T>(value: T): T {
  return JSON.parse(
    JSON.stringify(value, (key, each: unknown) =>
      key === 'matchExpressions' && Array.isArray(each) && each.length === 0 ? undefined : each,
    ),
  ) as T;
}
