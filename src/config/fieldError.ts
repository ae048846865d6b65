/** Errors of validation in the shape that Kubernetes gives them: `path: Invalid value: value: what is wrong`. */
import { printDuration } from './duration.ts';
import type { FeatureGates } from './kind.ts';
import { KIND } from './table.ts';

export type BadValue = string | number | readonly string[] | FeatureGates;

export function invalid(path: string, value: BadValue, detail: string): string {
  return `${KIND}.${path}: Invalid value: ${print(value)}: ${detail}`;
}

export function invalidDuration(path: string, ms: number, detail: string): string {
  return `${KIND}.${path}: Invalid value: ${printDuration(ms)}: ${detail}`;
}

export function unsupported(path: string, value: string, supported: readonly string[]): string {
  const values = supported.map((other) => JSON.stringify(other)).join(', ');
  return `${KIND}.${path}: Unsupported value: ${JSON.stringify(value)}: supported values: ${values}`;
}

export function forbidden(path: string, detail: string): string {
  return `${KIND}.${path}: Forbidden: ${detail}`;
}

export function required(path: string, detail: string): string {
  return `${KIND}.${path}: Required value: ${detail}`;
}

function print(value: BadValue): string {
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return JSON.stringify(value);
  if (isList(value)) return `[]string{${value.map((item) => JSON.stringify(item)).join(', ')}}`;
  const pairs = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `map[string]bool{${pairs.map(([name, on]) => `${JSON.stringify(name)}:${on}`).join(', ')}}`;
}

function isList(value: BadValue): value is readonly string[] {
  return Array.isArray(value);
}
