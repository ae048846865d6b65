/** Tables of docs/reference/api.md: what each answer consists of, from the same types as the schema. */
import { apiSchema, type Schema } from './apiSchema.ts';

/** The schema as text. */
export function schemaPage(root: string): string {
  return `${JSON.stringify(apiSchema(root), null, 2)}\n`;
}

const LINE = '<!-- Below this line: written by `node scripts/docs.mjs` -->\n';

/** The page, with the second part as it should be. */
export function withTypes(page: string, root: string): string {
  return `${page.slice(0, page.indexOf(LINE) + LINE.length)}\n${typeTables(root)}`;
}

/** Each type, its fields, and what they mean. */
function typeTables(root: string): string {
  const definitions = apiSchema(root)['$defs'] as Readonly<Record<string, Schema>>;
  return Object.entries(definitions)
    .map(([name, schema]) => `### ${name}\n\n${aboutType(schema)}${tableOf(schema)}`)
    .join('\n');
}

function aboutType(schema: Schema): string {
  const description = textOf(schema['description']);
  const plain = isObject(schema) || Array.isArray(schema['anyOf']) ? '' : `${printType(schema)}.`;
  const text = [description, plain].filter((part) => part !== '').join(' ');
  return text === '' ? '' : `${text}\n\n`;
}

function tableOf(schema: Schema): string {
  const variants = (schema['anyOf'] as readonly Schema[] | undefined)?.filter(isObject) ?? [];
  if (variants.length > 0)
    return variants
      .map((variant) => `${tableOf(variant)}\n`)
      .join('')
      .trimEnd()
      .concat('\n');
  if (!isObject(schema)) return '';
  return `| field | type | meaning |\n| --- | --- | --- |\n${rowsOf(schema, '').join('')}`;
}

/** Objects within are shown in place, with dots. */
function rowsOf(schema: Schema, prefix: string): readonly string[] {
  const properties = (schema['properties'] ?? {}) as Readonly<Record<string, Schema>>;
  const required = (schema['required'] ?? []) as readonly string[];
  return Object.entries(properties).flatMap(([name, inner]) => {
    const shown = `${prefix}${name}${required.includes(name) ? '' : '?'}`;
    const row = `| \`${shown}\` | ${printType(inner)} | ${textOf(inner['description'])} |\n`;
    const item = inner['type'] === 'array' ? (inner['items'] as Schema) : inner;
    const deeper = isObject(item) ? rowsOf(item, `${prefix}${name}${inner === item ? '' : '[]'}.`) : [];
    return [row, ...deeper];
  });
}

function isObject(schema: Schema): boolean {
  return schema['type'] === 'object' && schema['properties'] !== undefined;
}

function printType(schema: Schema): string {
  const { $ref, const: value, enum: values, items, type, anyOf, additionalProperties } = schema;
  if (typeof $ref === 'string') {
    const name = $ref.replace('#/$defs/', '');
    return `[${name}](#${name.toLowerCase()})`;
  }
  if (typeof value === 'string' || typeof value === 'number') return `\`${value}\``;
  if (Array.isArray(values)) return values.map((each) => `\`${String(each)}\``).join(', ');
  if (Array.isArray(anyOf)) return anyOf.map((each) => printType(each as Schema)).join(' or ');
  if (type === 'array') return `list of ${printType(items as Schema)}`;
  if (additionalProperties !== undefined) return `map of ${printType(additionalProperties as Schema)}`;
  return typeof type === 'string' ? type : 'anything';
}

function textOf(description: unknown): string {
  return typeof description === 'string' ? description.replaceAll('|', '\\|') : '';
}
