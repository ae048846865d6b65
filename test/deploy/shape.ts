/** A small language for the shape of API objects: which fields there are, of what type, and which must be there. */
import { isData } from './chart.ts';

/** Answers with what is wrong, each with the path to it. */
export type Shape = (value: unknown, path: string) => readonly string[];

function simple(what: string, holds: (value: unknown) => boolean): Shape {
  return (value, path) => (holds(value) ? [] : [`${path}: ${JSON.stringify(value)} is no ${what}`]);
}

export const text = simple('text', (value) => typeof value === 'string');
export const integer = simple('integer', Number.isInteger);
export const flag = simple('boolean', (value) => typeof value === 'boolean');
export const intOrText = simple(
  'integer or text',
  (value) => Number.isInteger(value) || typeof value === 'string',
);
export const quantity = simple(
  'quantity',
  (value) =>
    Number.isInteger(value) || (typeof value === 'string' && /^\d+(\.\d+)?(m|k|Ki|M|Mi|G|Gi)?$/.test(value)),
);
export const dnsName = simple(
  'lower-case DNS name',
  (value) =>
    typeof value === 'string' && value.length <= 63 && /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(value),
);
export const port = simple(
  'port',
  (value) => Number.isInteger(value) && Number(value) > 0 && Number(value) < 65536,
);

export function oneOf(...choices: readonly string[]): Shape {
  return simple(`one of ${choices.join(', ')}`, (value) => choices.some((choice) => choice === value));
}

export function list(of: Shape): Shape {
  return (value, path) =>
    Array.isArray(value)
      ? value.flatMap((each, index) => of(each, `${path}[${index}]`))
      : [`${path}: ${JSON.stringify(value)} is no list`];
}

export function mapOf(of: Shape): Shape {
  return (value, path) =>
    isData(value)
      ? Object.entries(value).flatMap(([key, each]) => of(each, `${path}[${key}]`))
      : [`${path}: ${JSON.stringify(value)} is no map`];
}

/** `name!` must be there, `name` may. */
export function object(fields: Readonly<Record<string, Shape>>): Shape {
  const known = new Map(Object.entries(fields).map(([key, shape]) => [key.replace('!', ''), shape]));
  const required = Object.keys(fields).flatMap((key) => (key.endsWith('!') ? [key.slice(0, -1)] : []));
  return (value, path) => {
    if (!isData(value)) return [`${path}: ${JSON.stringify(value)} is no object`];
    return [
      ...required.filter((key) => !(key in value)).map((key) => `${path}.${key} is missing`),
      ...Object.entries(value).flatMap(
        ([key, each]) => known.get(key)?.(each, `${path}.${key}`) ?? [`${path}.${key}: no such field`],
      ),
    ];
  };
}
