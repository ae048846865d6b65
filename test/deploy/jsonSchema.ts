/** As much of JSON Schema (draft 7) as values.schema.json uses; an unknown keyword is an error. */
import { type Data, isData } from './chart.ts';

type Check = (wanted: unknown, value: unknown, path: string, schema: Data) => readonly string[];

const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  boolean: (value) => typeof value === 'boolean',
  integer: (value) => Number.isInteger(value),
  number: (value) => typeof value === 'number',
  array: (value) => Array.isArray(value),
  object: isData,
};

function when(wrong: boolean, message: string): readonly string[] {
  return wrong ? [message] : [];
}

const KEYWORDS: Readonly<Record<string, Check>> = {
  $schema: () => [],
  title: () => [],
  description: () => [],
  type: (wanted, value, path) => {
    const names = (Array.isArray(wanted) ? wanted : [wanted]).map(String);
    const holds = names.map((name) => {
      const check = TYPES[name];
      if (!check) throw new Error(`schema: type ${name} is not known here`);
      return check(value);
    });
    return when(!holds.includes(true), `${path}: ${JSON.stringify(value)} is no ${names.join(' or ')}`);
  },
  enum: (wanted, value, path) =>
    when(
      Array.isArray(wanted) && !wanted.includes(value),
      `${path}: ${JSON.stringify(value)} is none of ${JSON.stringify(wanted)}`,
    ),
  not: (wanted, value, path) =>
    when(violations(wanted, value, path).length === 0, `${path}: ${JSON.stringify(value)} is not allowed`),
  pattern: (wanted, value, path) =>
    when(
      typeof value === 'string' && !new RegExp(String(wanted)).test(value),
      `${path}: ${JSON.stringify(value)} does not match ${String(wanted)}`,
    ),
  minLength: (wanted, value, path) =>
    when(typeof value === 'string' && value.length < Number(wanted), `${path}: too short`),
  minItems: (wanted, value, path) =>
    when(Array.isArray(value) && value.length < Number(wanted), `${path}: too few`),
  minProperties: (wanted, value, path) =>
    when(isData(value) && Object.keys(value).length < Number(wanted), `${path}: too few fields`),
  minimum: (wanted, value, path) => when(Number(value) < Number(wanted), `${path}: below ${String(wanted)}`),
  maximum: (wanted, value, path) => when(Number(value) > Number(wanted), `${path}: above ${String(wanted)}`),
  items: (wanted, value, path) =>
    Array.isArray(value) ? value.flatMap((each, index) => violations(wanted, each, `${path}[${index}]`)) : [],
  required: (wanted, value, path) =>
    isData(value) && Array.isArray(wanted)
      ? wanted.flatMap((key) => when(!(String(key) in value), `${path}.${String(key)} is missing`))
      : [],
  properties: (wanted, value, path) =>
    isData(value) && isData(wanted)
      ? Object.entries(value).flatMap(([key, each]) =>
          key in wanted ? violations(wanted[key], each, `${path}.${key}`) : [],
        )
      : [],
  additionalProperties: (wanted, value, path, schema) => {
    if (!isData(value)) return [];
    const known = isData(schema['properties']) ? schema['properties'] : {};
    const others = Object.entries(value).filter(([key]) => !(key in known));
    return others.flatMap(([key, each]) =>
      wanted === false ? [`${path}.${key}: no such value`] : violations(wanted, each, `${path}.${key}`),
    );
  },
};

export function violations(schema: unknown, value: unknown, path = 'values'): readonly string[] {
  if (!isData(schema)) throw new Error(`schema: no object at ${path}`);
  return Object.entries(schema).flatMap(([keyword, wanted]) => {
    const check = KEYWORDS[keyword];
    if (!check) throw new Error(`schema: keyword ${keyword} is not known here`);
    return check(wanted, value, path, schema);
  });
}
