/**
 * What a reader of the kernel keeps in a bundle, as JSON: netlink messages and the output of programs, which are read again
 * by what reads the kernel's. A dump comes from a file that somebody sent, so it may be anything.
 */
import { isJunctionError, JunctionError, messageOf } from '../errors.ts';
import { type Cidr, type Family, type Ip, parseCidr, parseIp } from '../model/ip.ts';
import type { ModeName } from '../model/mode.ts';
import { isMap } from '../text/cursor.ts';

const VERSION = 2;

export function dumpHeader<Mode extends ModeName>(kind: Mode, family: Family) {
  return { kind, version: VERSION, family };
}

/** Throws `BUNDLE_UNREADABLE`. */
export function readDump<T>(
  mode: ModeName,
  family: Family,
  dump: unknown,
  read: (fields: DumpFields) => T,
): T {
  try {
    const fields = new DumpFields(dump);
    if (fields.text('kind') !== mode) throw new Error(`it is of the ${fields.text('kind')} mode`);
    const version = fields.number('version');
    if (version !== VERSION)
      throw new Error(
        `its version is ${version}, and only ${VERSION} is known; use the Junction that wrote it`,
      );
    if (fields.text('family') !== family) throw new Error(`it is of ${fields.text('family')}`);
    return read(fields);
  } catch (error) {
    if (isJunctionError(error, 'BUNDLE_UNREADABLE')) throw error;
    throw new JunctionError(
      'BUNDLE_UNREADABLE',
      `the dump of the ${mode} mode cannot be read: ${messageOf(error)}`,
    );
  }
}

/** An object of a dump, whose fields are read by what they have to be. */
export class DumpFields {
  readonly #fields: Readonly<Record<string, unknown>>;

  constructor(value: unknown) {
    if (!isMap(value)) throw new Error('something in it is no object');
    this.#fields = value;
  }

  #field<T>(key: string, what: string, check: (value: unknown) => value is T): T {
    const value = Object.hasOwn(this.#fields, key) ? this.#fields[key] : undefined;
    if (check(value)) return value;
    throw new Error(`${key} is no ${what}`);
  }

  keys(): readonly string[] {
    return Object.keys(this.#fields);
  }

  optional<T>(key: string, read: () => T): T | undefined {
    return Object.hasOwn(this.#fields, key) ? read() : undefined;
  }

  text(key: string): string {
    return this.#field(key, 'text', (value) => typeof value === 'string');
  }

  choice<T extends string>(key: string, words: readonly T[]): T {
    return this.#field(key, `one of ${words.join(', ')}`, (value): value is T =>
      words.some((word) => word === value),
    );
  }

  flag(key: string): boolean {
    return this.#field(key, 'boolean', (value) => typeof value === 'boolean');
  }

  number(key: string): number {
    return this.#field(key, 'number', (value) => typeof value === 'number');
  }

  texts(key: string): readonly string[] {
    return this.#field(key, 'list of texts', (value): value is readonly string[] =>
      isList(value, (each) => typeof each === 'string'),
    );
  }

  ip(key: string): Ip {
    return parsed(this.text(key), parseIp(this.text(key)));
  }

  ips(key: string): readonly Ip[] {
    return this.texts(key).map((text) => parsed(text, parseIp(text)));
  }

  cidr(key: string): Cidr {
    return parsed(this.text(key), parseCidr(this.text(key)));
  }

  cidrs(key: string): readonly Cidr[] {
    return this.texts(key).map((text) => parsed(text, parseCidr(text)));
  }

  /** In hexadecimal. */
  messages(key: string): readonly Uint8Array[] {
    return this.texts(key).map((text) => Buffer.from(text, 'hex'));
  }

  map(key: string): DumpFields {
    return new DumpFields(this.#fields[key]);
  }

  maps(key: string): readonly DumpFields[] {
    return this.#field(key, 'list', (value) => Array.isArray(value)).map((each) => new DumpFields(each));
  }
}

function isList(value: unknown, check: (each: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(check);
}

function parsed<T>(text: string, value: T | undefined): T {
  if (value === undefined) throw new Error(`${JSON.stringify(text)} is no address`);
  return value;
}
