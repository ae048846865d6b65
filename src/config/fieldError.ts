/**
 * Errors of validation in the shape that Kubernetes gives them: `path: Invalid value: value: what is wrong`. Values are
 * printed as JSON, durations as the text that a file has.
 */
import { printDuration } from './duration.ts';

export type BadValue = string | number | readonly string[];

export function invalid(path: string, value: BadValue, detail: string): string {
  return `${path}: Invalid value: ${JSON.stringify(value)}: ${detail}`;
}

export function invalidDuration(path: string, ms: number, detail: string): string {
  return invalid(path, printDuration(ms), detail);
}

export function unsupported(path: string, value: string, supported: readonly string[]): string {
  const values = supported.map((other) => JSON.stringify(other)).join(', ');
  return `${path}: Unsupported value: ${JSON.stringify(value)}: supported values: ${values}`;
}

export function forbidden(path: string, detail: string): string {
  return `${path}: Forbidden: ${detail}`;
}

export function required(path: string, detail: string): string {
  return `${path}: Required value: ${detail}`;
}
