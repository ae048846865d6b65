/**
 * Validates a value against a schema: the keywords that docs/reference/api.schema.json uses, and no others. Stricter than
 * JSON Schema in one thing: a property that the schema does not name is a mistake, so that every field is documented.
 */
type Schema = Readonly<Record<string, unknown>>;

const KEYWORDS = new Set([
  '$ref',
  'type',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'enum',
  'const',
  'anyOf',
  'description',
]);

/** What is wrong, each with its place: `$.ports[0].state: "good" is not one of …`. */
export function schemaProblems(root: Schema, name: string, value: unknown): readonly string[] {
  const definitions = root['$defs'] as Readonly<Record<string, Schema>>;
  return problemsOf({ $ref: `#/$defs/${name}` }, value, '$', definitions);
}

function problemsOf(
  schema: Schema,
  value: unknown,
  at: string,
  definitions: Readonly<Record<string, Schema>>,
): readonly string[] {
  const unknown = Object.keys(schema).filter((keyword) => !KEYWORDS.has(keyword));
  if (unknown.length > 0) throw new Error(`the validator does not know ${unknown.join(', ')}`);
  const { $ref, anyOf, items, type } = schema;
  if (typeof $ref === 'string') {
    const definition = definitions[$ref.replace('#/$defs/', '')];
    if (!definition) throw new Error(`no definition ${$ref}`);
    return problemsOf(definition, value, at, definitions);
  }
  if (Array.isArray(anyOf)) {
    const each = (anyOf as readonly Schema[]).map((one) => problemsOf(one, value, at, definitions));
    return each.some(({ length }) => length === 0) ? [] : (each.sort((a, b) => a.length - b.length)[0] ?? []);
  }
  if ('const' in schema && schema['const'] !== value)
    return [`${at}: ${JSON.stringify(value)} is not ${JSON.stringify(schema['const'])}`];
  if (Array.isArray(schema['enum']) && !schema['enum'].includes(value))
    return [`${at}: ${JSON.stringify(value)} is not one of ${schema['enum'].join(', ')}`];
  if (typeof type === 'string' && type !== typeOf(value)) return [`${at}: ${typeOf(value)} is not ${type}`];
  if (Array.isArray(value) && items)
    return value.flatMap((item, index) => problemsOf(items as Schema, item, `${at}[${index}]`, definitions));
  return type === 'object' ? objectProblems(schema, value as Schema, at, definitions) : [];
}

function objectProblems(
  schema: Schema,
  value: Schema,
  at: string,
  definitions: Readonly<Record<string, Schema>>,
): readonly string[] {
  const properties = schema['properties'] as Readonly<Record<string, Schema>> | undefined;
  const others = schema['additionalProperties'] as Schema | undefined;
  const required = (schema['required'] ?? []) as readonly string[];
  return [
    ...required.filter((name) => value[name] === undefined).map((name) => `${at}.${name} is missing`),
    ...Object.entries(value).flatMap(([name, inner]) => {
      const own = properties?.[name] ?? others;
      if (own) return problemsOf(own, inner, `${at}.${name}`, definitions);
      return properties ? [`${at}.${name} is not documented`] : [];
    }),
  ];
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}
