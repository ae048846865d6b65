/** What a value that came from elsewhere must be. */
import { FAMILIES } from '../model/ip.ts';
import { isMap, ownField } from '../text/cursor.ts';

/** What a value must be; fields that no shape names are left alone. */
export type Shape =
  | 'text'
  | 'number'
  | 'flag'
  | { readonly oneOf: readonly string[] }
  | { readonly optional: Shape }
  | { readonly listOf: Shape }
  | { readonly mapOf: Shape }
  | { readonly fields: Readonly<Record<string, Shape>> };

export const maybe = (shape: Shape): Shape => ({ optional: shape });
export const every = (shape: Shape): Shape => ({ listOf: shape });
export const fields = (shapes: Readonly<Record<string, Shape>>): Shape => ({ fields: shapes });

export const FAMILY: Shape = { oneOf: FAMILIES };

export function conforms(value: unknown, shape: Shape): boolean {
  if (shape === 'text') return typeof value === 'string';
  if (shape === 'number') return typeof value === 'number';
  if (shape === 'flag') return typeof value === 'boolean';
  if ('oneOf' in shape) return typeof value === 'string' && shape.oneOf.includes(value);
  if ('optional' in shape) return value === undefined || conforms(value, shape.optional);
  if ('listOf' in shape) return Array.isArray(value) && value.every((item) => conforms(item, shape.listOf));
  if (!isMap(value)) return false;
  if ('mapOf' in shape) return Object.values(value).every((item) => conforms(item, shape.mapOf));
  return Object.entries(shape.fields).every(([name, inner]) => conforms(ownField(value, name), inner));
}
