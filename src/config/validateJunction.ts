/** Junction's own section. */
import { type EffectiveConfig, toFields } from './effective.ts';
import type { Field } from './entry.ts';
import { forbidden, invalid, unsupported } from './fieldError.ts';
import { valueAt } from './fields.ts';
import { JUNCTION } from './sections/junction.ts';

const FIELDS: readonly Field[] = JUNCTION.fields;

export function validateJunction(config: EffectiveConfig): readonly string[] {
  return [...unknownChoices(config), ...sources(config)];
}

function unknownChoices(config: EffectiveConfig): readonly string[] {
  const fields = toFields(config);
  return FIELDS.flatMap((field) => {
    const value = field.kind.print(valueAt(fields, field));
    return field.choices?.includes(value) === false ? [unsupported(field.path, value, field.choices)] : [];
  });
}

function sources({ junction, clientConnection, master }: EffectiveConfig): readonly string[] {
  const manifests = junction.manifests ?? [];
  const path = 'junction.manifests';
  if (manifests.includes('')) return [invalid(path, manifests, 'must not hold an empty name')];
  const hasServer = clientConnection.kubeconfig !== '' || master !== '';
  if (manifests.length === 0 || !hasServer) return [];
  const both = clientConnection.kubeconfig === '' ? '--master' : 'clientConnection.kubeconfig';
  return [forbidden(path, `may not be set together with ${both}: objects come from one source`)];
}
