/** Loaded when it is needed. A module of its own: what a bundler makes of `import('yaml')` has no names. */
import { stringify } from 'yaml';

export function printYaml(value: unknown): string {
  return stringify(value, { lineWidth: 0, aliasDuplicateObjects: false });
}
