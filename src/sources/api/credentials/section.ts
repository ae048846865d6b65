/** One map of a kubeconfig, read field by field, with messages that say where it stands. */
import { JunctionError } from '../../../errors.ts';
import { isMap, ownField } from '../../../model/project/cursor.ts';
import { quote } from '../../../model/project/quote.ts';

export class Section {
  /** `kubeconfig /etc/junction.conf, user "proxy"` */
  readonly where: string;
  readonly #map: Readonly<Record<string, unknown>>;

  constructor(where: string, value: unknown) {
    this.where = where;
    if (value !== undefined && value !== null && !isMap(value)) {
      throw new JunctionError('KUBECONFIG_INVALID', `${where} is ${quote(value)}, not a map`);
    }
    this.#map = isMap(value) ? value : {};
  }

  has(field: string): boolean {
    const value = ownField(this.#map, field);
    return value !== undefined && value !== null && value !== '';
  }

  /** '' when it is not there. Values are never shown: some are secrets. */
  text(field: string): string {
    const value = ownField(this.#map, field) ?? '';
    if (typeof value !== 'string') throw this.bad(field, 'is not text');
    return value;
  }

  flag(field: string): boolean {
    const value = ownField(this.#map, field) ?? false;
    if (typeof value !== 'boolean') throw this.bad(field, 'is neither true nor false');
    return value;
  }

  /** Text in base64; nothing when it is not there. */
  decoded(field: string): string | undefined {
    const text = this.text(field).replaceAll(/\s/g, '');
    if (text === '') return undefined;
    const bytes = Buffer.from(text, 'base64');
    if (bytes.toString('base64').replace(/=+$/, '') !== text.replace(/=+$/, '')) {
      throw this.bad(field, 'is not base64');
    }
    return bytes.toString('utf8');
  }

  list(field: string): readonly unknown[] {
    const value = ownField(this.#map, field) ?? [];
    if (!Array.isArray(value)) throw this.bad(field, 'is not a list');
    return value;
  }

  section(field: string, where = `${this.where}, ${field}`): Section {
    return new Section(where, ownField(this.#map, field));
  }

  bad(field: string, what: string, hint?: string): JunctionError {
    return new JunctionError('KUBECONFIG_INVALID', `${this.where}: ${field} ${what}`, { hint });
  }
}
