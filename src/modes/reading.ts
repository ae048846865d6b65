/** Fields of a dump, which came from a file that somebody sent: they are what they should be, or it is unreadable. */
import { JunctionError } from '../errors.ts';
import { type Ip, parseIp } from '../model/ip.ts';
import { isMap } from '../text/cursor.ts';

const HEX = /^(?:[0-9a-f]{2})*$/;
const COUNT = /^\d{1,20}$/;
const U32 = 0xffff_ffff;

export class DumpFields {
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #what: string;

  constructor(value: unknown, what: string) {
    this.#what = what;
    if (!isMap(value)) throw this.unreadable('it is no object');
    this.#fields = value;
  }

  unreadable(reason: string): JunctionError {
    return new JunctionError('BUNDLE_UNREADABLE', `the dump cannot be read: ${this.#what}: ${reason}`);
  }

  fail(reason: string): never {
    throw this.unreadable(reason);
  }

  #field(key: string): unknown {
    return Object.hasOwn(this.#fields, key) ? this.#fields[key] : undefined;
  }

  optional<T>(key: string, read: () => T): T | undefined {
    return this.#field(key) === undefined ? undefined : read();
  }

  text(key: string): string {
    const value = this.#field(key);
    return typeof value === 'string' ? value : this.fail(`${key} is no text`);
  }

  ip(key: string): Ip {
    return this.#ipOf(this.text(key));
  }

  ips(key: string): readonly Ip[] {
    return this.texts(key).map((text) => this.#ipOf(text));
  }

  #ipOf(text: string): Ip {
    return parseIp(text) ?? this.fail(`${JSON.stringify(text)} is no address`);
  }

  flag(key: string): boolean {
    const value = this.#field(key);
    return typeof value === 'boolean' ? value : this.fail(`${key} is neither true nor false`);
  }

  choice<T extends string>(key: string, words: readonly T[]): T {
    const value = this.#field(key);
    return words.find((word) => word === value) ?? this.fail(`${key} is none of ${words.join(', ')}`);
  }

  integer(key: string, most = U32, least = 0): number {
    return this.#integerOf(this.#field(key), key, most, least);
  }

  integers(key: string, most: number): readonly number[] {
    return this.#list(key).map((value) => this.#integerOf(value, key, most, 0));
  }

  #integerOf(value: unknown, key: string, most: number, least: number): number {
    const isOne = typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most;
    return isOne ? value : this.fail(`${key} is no number from ${least} to ${most}`);
  }

  count(key: string): bigint {
    const text = this.text(key);
    return COUNT.test(text) ? BigInt(text) : this.fail(`${key} is no count`);
  }

  bytes(key: string): Uint8Array {
    return this.bytesOf(this.text(key));
  }

  bytesOf(text: string): Uint8Array {
    return HEX.test(text)
      ? new Uint8Array(Buffer.from(text, 'hex'))
      : this.fail('bytes that are not hexadecimal');
  }

  texts(key: string): readonly string[] {
    return this.#list(key).map((value) =>
      typeof value === 'string' ? value : this.fail(`${key} is no list of texts`),
    );
  }

  /** Of a map whose values are all text. */
  textMap(key: string): Readonly<Record<string, string>> {
    const map = this.map(key);
    return Object.fromEntries(map.keys().map((name) => [name, map.text(name)]));
  }

  keys(): readonly string[] {
    return Object.keys(this.#fields);
  }

  map(key: string): DumpFields {
    return new DumpFields(this.#field(key), key);
  }

  maps(key: string): readonly DumpFields[] {
    return this.#list(key).map((value) => new DumpFields(value, key));
  }

  #list(key: string): readonly unknown[] {
    const value = this.#field(key);
    return Array.isArray(value) ? value : this.fail(`${key} is no list`);
  }
}
