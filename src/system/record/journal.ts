/**
 * The record of what was written, as a file: frames one after the other, of which later ones replace what earlier ones
 * say. It holds while its last frame says so: `done`, with the generation of nf_tables. One that ends with `intent` was
 * written by a process that ended while it changed the kernel.
 *
 * Each frame has a checksum of itself and of all before it, so that bytes that were changed or left out are noticed.
 */
import { crc32 } from 'node:zlib';
import type { Family } from '../../model/ip.ts';
import { FAMILIES } from '../../model/ip.ts';
import type { ServicePortId } from '../../model/serviceTracker.ts';
import { decodeServicePortId } from '../../plan/portCodec.ts';

/** Of the format. Another one is not read. */
export const RECORD_VERSION = 1;

const MAGIC = 'junction-written';
/** Type, length, checksum. */
const FRAME_HEADER_BYTES = 9;
const FRAMES = { header: 1, section: 2, ports: 3, intent: 4, done: 5 } as const;
export type FrameType = keyof typeof FRAMES;
/** Of an entry of a service port: it is not there any more, or as it was written. */
export const ENTRY = { deleted: 0, plain: 1, withoutComments: 2 } as const;
const MOST_TYPES = 6;

/** What the whole record is bound to. */
export interface RecordBinding {
  readonly version: number;
  /** Of the running kernel. */
  readonly boot: string;
  /** The network namespace. */
  readonly network: string;
  readonly mode: string;
  /** Which program: another one may compile a plan into other rules. */
  readonly program: string;
}

interface RecordHeader extends RecordBinding {
  readonly magic: string;
  /** A name that is in the kernel too, for as long as the record is kept. */
  readonly mark: string;
}

/** Of one family, besides its service ports. */
interface SectionFacts {
  /** The kernel's own numbers of what holds our rules. */
  readonly identity: string;
  /** What the rules depend on besides the plan, as text. */
  readonly options: string;
  /** What the mode keeps besides. */
  readonly state: unknown;
}

export interface Entry {
  readonly bytes: Uint8Array;
  readonly isWithoutComments: boolean;
}

export interface RecordSection extends SectionFacts {
  readonly entries: ReadonlyMap<ServicePortId, Entry>;
}

export interface Journal {
  readonly header: RecordHeader;
  readonly sections: ReadonlyMap<Family, RecordSection>;
  /** Of nf_tables, when all of this was in the kernel; 0: other programs may have changed something by then. */
  readonly generation: number;
  /** A process meant to change the kernel after that, and did not say that it did. */
  readonly isOpen: boolean;
  readonly checksum: number;
  /** Bytes that a record without replaced entries would have. */
  readonly liveBytes: number;
}

/** Puts frames one behind the other. */
export function frame(type: FrameType, payload: Uint8Array, checksum: number): Uint8Array {
  const bytes = new Uint8Array(FRAME_HEADER_BYTES + payload.length);
  const view = new DataView(bytes.buffer);
  bytes[0] = FRAMES[type];
  view.setUint32(1, payload.length, true);
  bytes.set(payload, FRAME_HEADER_BYTES);
  view.setUint32(5, checksumOf(FRAMES[type], payload, checksum), true);
  return bytes;
}

/** Of a frame that was just made. */
export function checksumIn(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(5, true);
}

function checksumOf(type: number, payload: Uint8Array, before: number): number {
  return crc32(payload, crc32(Uint8Array.of(type), before));
}

export function headerFrame(binding: RecordBinding, mark: string): Uint8Array {
  const header: RecordHeader = { magic: MAGIC, ...binding, mark };
  return frame('header', jsonBytes(header), 0);
}

/** `isReset`: what was recorded of this family before is void. */
export function sectionPayload(family: Family, facts: SectionFacts, isReset: boolean): Uint8Array {
  return jsonBytes({ family, isReset, ...facts });
}

export function donePayload(generation: number): Uint8Array {
  return jsonBytes({ generation });
}

/** Reads a whole record. A text says why it cannot be read. */
export function readJournal(bytes: Uint8Array): Journal | string {
  let header: RecordHeader | undefined;
  const sections = new Map<Family, MutableSection>();
  let generation: number | undefined;
  let last: number | undefined;
  let checksum = 0;
  for (let offset = 0; offset < bytes.length; ) {
    const next = readFrame(bytes, offset, checksum);
    if (!next) return 'it is cut off, or was changed';
    const { type, payload } = next;
    offset += FRAME_HEADER_BYTES + payload.length;
    checksum = next.checksum;
    if (type === FRAMES.header) header = headerIn(payload);
    if (!header) return 'it is no record of this program';
    if (header.version !== RECORD_VERSION) return `its version is ${header.version}, not ${RECORD_VERSION}`;
    if (type === FRAMES.section && !takeSection(payload, sections)) return 'a section cannot be read';
    if (type === FRAMES.ports && !takePorts(payload, sections)) return 'a service port cannot be read';
    last = type;
    if (type !== FRAMES.done) continue;
    const done: { readonly generation?: number } | undefined = jsonOf(payload);
    generation = done?.generation;
    if (!Number.isSafeInteger(generation)) return 'a generation cannot be read';
  }
  if (!header) return 'it is empty';
  if (generation === undefined || (last !== FRAMES.done && last !== FRAMES.intent))
    return 'its process ended before it was complete';
  const isOpen = last === FRAMES.intent;
  const liveBytes = liveBytesOf(sections.values());
  return { header, sections, generation, isOpen, checksum, liveBytes };
}

interface SectionFrame extends SectionFacts {
  readonly family: Family;
  readonly isReset: boolean;
}

interface MutableSection extends SectionFacts {
  readonly entries: Map<ServicePortId, Entry>;
}

interface Frame {
  readonly type: number;
  readonly payload: Uint8Array;
  readonly checksum: number;
}

function readFrame(bytes: Uint8Array, offset: number, before: number): Frame | undefined {
  const start = offset + FRAME_HEADER_BYTES;
  if (start > bytes.length) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset + offset);
  const type = view.getUint8(0);
  const end = start + view.getUint32(1, true);
  if (type >= MOST_TYPES || end > bytes.length) return undefined;
  const payload = bytes.subarray(start, end);
  const checksum = checksumOf(type, payload, before);
  return checksum === view.getUint32(5, true) ? { type, payload, checksum } : undefined;
}

function headerIn(payload: Uint8Array): RecordHeader | undefined {
  const header = jsonOf(payload) as RecordHeader | undefined;
  return header?.magic === MAGIC && typeof header.mark === 'string' ? header : undefined;
}

function takeSection(payload: Uint8Array, sections: Map<Family, MutableSection>): boolean {
  const read = jsonOf(payload) as SectionFrame | undefined;
  if (!read || !FAMILIES.includes(read.family)) return false;
  const { family, isReset, identity, options, state } = read;
  if (typeof identity !== 'string' || typeof options !== 'string') return false;
  const known = isReset ? undefined : sections.get(family);
  sections.set(family, { identity, options, state, entries: known?.entries ?? new Map<string, Entry>() });
  return true;
}

/** A byte for the family, and then each entry: its length, its kind, and its bytes. */
function takePorts(payload: Uint8Array, sections: ReadonlyMap<Family, MutableSection>): boolean {
  const family = FAMILIES[payload[0] ?? FAMILIES.length];
  const entries = family && sections.get(family)?.entries;
  if (!entries) return false;
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  for (let offset = 1; offset < payload.length; ) {
    const start = offset + ENTRY_HEADER_BYTES;
    if (start > payload.length) return false;
    const end = start + view.getUint32(offset, true);
    const kind = view.getUint8(offset + 4);
    if (end > payload.length) return false;
    const bytes = payload.subarray(start, end);
    const id = decodeServicePortId(bytes);
    if (id === undefined) return false;
    if (kind === ENTRY.deleted) entries.delete(id);
    else entries.set(id, { bytes, isWithoutComments: kind === ENTRY.withoutComments });
    offset = end;
  }
  return true;
}

const ENTRY_HEADER_BYTES = 5;

/** Collects entries of one family until there are enough for a frame. */
export class EntryBuffer {
  #bytes = new Uint8Array(1 << 16);
  #length = 1;

  constructor(family: Family) {
    this.#bytes[0] = FAMILIES.indexOf(family);
  }

  get length(): number {
    return this.#length;
  }

  add(kind: (typeof ENTRY)[keyof typeof ENTRY], bytes: Uint8Array): void {
    const end = this.#length + ENTRY_HEADER_BYTES + bytes.length;
    if (end > this.#bytes.length) {
      const larger = new Uint8Array(2 * end);
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    new DataView(this.#bytes.buffer).setUint32(this.#length, bytes.length, true);
    this.#bytes[this.#length + 4] = kind;
    this.#bytes.set(bytes, this.#length + ENTRY_HEADER_BYTES);
    this.#length = end;
  }

  /** The payload of a frame. Valid until the next `add`. */
  take(): Uint8Array {
    const bytes = this.#bytes.subarray(0, this.#length);
    this.#length = 1;
    return bytes;
  }
}

function liveBytesOf(sections: Iterable<RecordSection>): number {
  let sum = 0;
  for (const { entries } of sections)
    for (const { bytes } of entries.values()) sum += bytes.length + ENTRY_HEADER_BYTES;
  return sum;
}

function jsonBytes(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

function jsonOf(bytes: Uint8Array): object | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'));
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
