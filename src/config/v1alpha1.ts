/** The configuration as Kubernetes shows it: `/configz` and the file of `--write-config-to`. */
import { stringify } from 'yaml';
import { type EffectiveConfig, toFields } from './effective.ts';
import { setAt, valueAt } from './fields.ts';
import { API_VERSION, FIELDS, isDefault, isZero, KIND } from './table.ts';

/** The body of `/configz`: compact, keys in the order of the API. */
export function configz(config: EffectiveConfig): string {
  const [group] = API_VERSION.split('/');
  return JSON.stringify({ [group ?? '']: toV1alpha1(config) });
}

/** The text of a configuration file with the same meaning; keys sorted, as Kubernetes writes YAML. */
export function writeConfig(config: EffectiveConfig): string {
  return stringify(toV1alpha1(config), { sortMapEntries: true, indentSeq: false, lineWidth: 0 });
}

export function toV1alpha1(config: EffectiveConfig): Readonly<Record<string, unknown>> {
  const fields = toFields(config);
  const root: Record<string, unknown> = { kind: KIND, apiVersion: API_VERSION };
  for (const field of FIELDS) {
    const value = valueAt(fields, field);
    const isOmitted =
      (field.omit === 'zero' && isZero(field, value)) ||
      (field.omit === 'default' && isDefault(field, value));
    if (!isOmitted) setAt(root, field.path, field.kind.toJson(value));
  }
  return root;
}
