/**
 * Reads objects straight into slim values. Most objects are in order, and for these the way over a raw object and its
 * checks costs several times as much.
 *
 * A value that is not in order is noted, and the object is read again in the other way, which says what is wrong. So
 * there is one place for every message, and here only the answer to "is it in order?".
 */
import { specialAddress } from '../../../model/project/addresses.ts';
import { SERVICE_NAME } from '../../../model/project/endpointSlice.ts';
import { HEADLESS, TRIGGER_TIME } from '../../../model/project/names.ts';
import { OTHER_PROXY } from '../../../model/project/service.ts';
import { type Ip, parseIp } from '../../../model/ip.ts';
import { objectKey, type Protocol } from '../../../model/objects.ts';
import { parseRfc3339 } from '../../../text/time.ts';
import type { Problem, Projection } from '../../../text/cursor.ts';
import { ApiFailure } from '../failure.ts';
import { INITIAL_EVENTS_END, type ReceivedObject } from '../received.ts';
import { LAST_SECOND, readSeconds } from './decode.ts';
import { isLabel, isOrdinaryIpv4 } from './names.ts';
import { BYTES, VARINT, WireReader } from './wire.ts';

/** Good until the next chunk: its version, which of a list nobody asks for, is decoded when somebody does. */
class StraightObject<T> implements ReceivedObject<T> {
  readonly key: string;
  readonly hasVersion: boolean;
  readonly endsInitialEvents = false;
  readonly isBroken = false;
  readonly #value: T;
  readonly #version: readonly [bytes: Buffer, from: number, end: number];

  constructor(key: string, value: T, version: readonly [bytes: Buffer, from: number, end: number]) {
    this.key = key;
    this.#value = value;
    this.#version = version;
    this.hasVersion = version[2] > version[1];
  }

  get resourceVersion(): string {
    const [bytes, from, end] = this.#version;
    return bytes.toString('utf8', from, end);
  }

  project(): Projection<T> {
    return { kind: 'object', value: this.#value, warnings: NO_WARNINGS };
  }
}

const NO_WARNINGS: readonly Problem[] = [];

/** Reads a part of the bytes; without one, all of them. Nothing where the object is not in order. */
export type StraightRead<T> = (
  bytes: Uint8Array,
  from?: number,
  end?: number,
) => StraightObject<T> | undefined;

/** Tags of fields, by their number. */
export const bytesTag = (number: number): number => (number << 3) | BYTES;
export const varintTag = (number: number): number => (number << 3) | VARINT;

/** Numbers of fields that are read: one of them with another wire type is not in order. */
export function fieldSet(...numbers: readonly number[]): number {
  return numbers.reduce((set, number) => set | (1 << number), 0);
}

const NAME = bytesTag(1);
const NAMESPACE = bytesTag(3);
const RESOURCE_VERSION = bytesTag(6);
const CREATED = bytesTag(8);
const LABELS = bytesTag(11);
const ANNOTATIONS = bytesTag(12);
/** One that is being deleted (9) is read in the other way. */
const META_FIELDS = fieldSet(1, 3, 6, 8, 9, 11, 12);

const KEY = bytesTag(1);
const VALUE = bytesTag(2);
const SERVICE_LABEL = Buffer.from(SERVICE_NAME);
const HEADLESS_LABEL = Buffer.from(HEADLESS);
const OTHER_PROXY_LABEL = Buffer.from(OTHER_PROXY);
const TRIGGER_ANNOTATION = Buffer.from(TRIGGER_TIME);
const END_ANNOTATION = Buffer.from(INITIAL_EVENTS_END);

/** The first second of the year 0. */
const FIRST_SECOND = -62_167_219_200;

type NameCheck = (bytes: Uint8Array, from: number, end: number) => boolean;

export class StraightReader {
  readonly wire = new WireReader();
  isInOrder = true;
  name = '';
  namespace = '';
  /** Milliseconds since the epoch. */
  createdAt: number | undefined;
  /** The label `kubernetes.io/service-name`. */
  service = '';
  triggerTime: number | undefined;
  /** Where its version is. */
  #versionFrom = 0;
  #versionEnd = 0;

  /** The value copies what it needs: nothing of `bytes` is held by it. */
  read<T>(
    bytes: Uint8Array,
    readValue: () => T,
    from = 0,
    end = bytes.length,
  ): StraightObject<T> | undefined {
    this.#reset();
    const { wire } = this;
    wire.load(bytes, from, end);
    try {
      const value = readValue();
      const isNamed = this.name !== '' && this.namespace !== '';
      if (!this.isInOrder || !isNamed) return undefined;
      const key = objectKey(this.namespace, this.name);
      return new StraightObject(key, value, [wire.bytes, this.#versionFrom, this.#versionEnd]);
    } catch (error) {
      if (error instanceof ApiFailure) return undefined;
      throw error;
    } finally {
      wire.unload();
    }
  }

  #reset(): void {
    this.isInOrder = true;
    this.name = '';
    this.namespace = '';
    this.createdAt = undefined;
    this.service = '';
    this.triggerTime = undefined;
    this.#versionFrom = 0;
    this.#versionEnd = 0;
  }

  /** A field that nobody reads, or one of `known` with another wire type. */
  other(tag: number, known: number): void {
    const number = tag >>> 3;
    if (number < 32 && ((known >>> number) & 1) === 1) this.isInOrder = false;
    this.wire.skip(tag & 7);
  }

  /** `isName`: what the object may be called. */
  metadata(isName: NameCheck): void {
    const { wire } = this;
    const outer = wire.enter();
    while (wire.at < wire.end) {
      const tag = wire.tag();
      if (tag === NAME) this.name = this.checked(isName);
      else if (tag === NAMESPACE) this.namespace = this.checkedShared(isLabel);
      else if (tag === RESOURCE_VERSION) this.#readVersion();
      else if (tag === CREATED) this.createdAt = this.#time();
      else if (tag === LABELS || tag === ANNOTATIONS) this.#entry(tag === LABELS);
      else this.other(tag, META_FIELDS);
    }
    wire.end = outer;
  }

  #readVersion(): void {
    const { wire } = this;
    this.#versionEnd = wire.valueEnd();
    this.#versionFrom = wire.at;
    wire.at = this.#versionEnd;
  }

  /** A name that its object has for itself. */
  checked(check: NameCheck): string {
    const { wire } = this;
    const end = wire.valueEnd();
    if (!check(wire.bytes, wire.at, end)) this.isInOrder = false;
    return wire.asciiTo(end);
  }

  /** A name that many objects have. */
  checkedShared(check: NameCheck): string {
    const { wire } = this;
    const end = wire.valueEnd();
    if (!check(wire.bytes, wire.at, end)) this.isInOrder = false;
    return wire.sharedTextTo(end);
  }

  protocol(): Protocol {
    const text = this.wire.sharedText();
    if (text === 'TCP' || text === 'UDP' || text === 'SCTP') return text;
    if (text !== '') this.isInOrder = false;
    return 'TCP';
  }

  /** 0 too. */
  port(): number {
    const port = this.wire.int32();
    if (port < 0 || port > 65_535) this.isInOrder = false;
    return port;
  }

  /** An address that a service or an endpoint may have. */
  ip(): Ip {
    const { wire } = this;
    const end = wire.valueEnd();
    if (isOrdinaryIpv4(wire.bytes, wire.at, end)) return wire.asciiTo(end) as Ip;
    const text = wire.bytes.toString('utf8', wire.at, end);
    wire.at = end;
    const ip = parseIp(text);
    if (ip === undefined || specialAddress(ip) !== undefined) this.isInOrder = false;
    return ip ?? (text as Ip);
  }

  #time(): number | undefined {
    const seconds = readSeconds(this.wire);
    if (seconds === undefined) return undefined;
    if (seconds < FIRST_SECOND || seconds > LAST_SECOND) this.isInOrder = false;
    return seconds * 1000;
  }

  /** One label or annotation. */
  #entry(isLabelEntry: boolean): void {
    const { wire } = this;
    const outer = wire.enter();
    let keyAt = wire.at;
    let keyEnd = wire.at;
    let valueAt = wire.at;
    let valueEnd = wire.at;
    while (wire.at < wire.end) {
      const tag = wire.tag();
      if (tag === KEY) {
        keyEnd = wire.valueEnd();
        keyAt = wire.at;
        wire.at = keyEnd;
      } else if (tag === VALUE) {
        valueEnd = wire.valueEnd();
        valueAt = wire.at;
        wire.at = valueEnd;
      } else {
        wire.skip(tag & 7);
      }
    }
    wire.end = outer;
    const after = wire.at;
    wire.at = valueAt;
    if (isLabelEntry) this.#label(keyAt, keyEnd, valueEnd);
    else this.#annotation(keyAt, keyEnd, valueEnd);
    wire.at = after;
  }

  /** The value begins here. */
  #label(keyAt: number, keyEnd: number, valueEnd: number): void {
    const { wire } = this;
    if (wire.isAt(SERVICE_LABEL, keyAt, keyEnd)) {
      // Of a Service it means nothing.
      this.service = isLabel(wire.bytes, wire.at, valueEnd) ? wire.asciiTo(valueEnd) : '';
    } else if (wire.isAt(HEADLESS_LABEL, keyAt, keyEnd) || wire.isAt(OTHER_PROXY_LABEL, keyAt, keyEnd)) {
      this.isInOrder = false;
    }
  }

  #annotation(keyAt: number, keyEnd: number, valueEnd: number): void {
    const { wire } = this;
    if (wire.isAt(END_ANNOTATION, keyAt, keyEnd)) this.isInOrder = false;
    if (!wire.isAt(TRIGGER_ANNOTATION, keyAt, keyEnd)) return;
    this.triggerTime = parseRfc3339(wire.bytes.toString('utf8', wire.at, valueEnd));
    if (this.triggerTime === undefined) this.isInOrder = false;
  }
}
