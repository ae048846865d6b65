/** Chains by their names, all but those that are known: of 40,000 chains some dozens are left to be decoded. */
import { findAttribute } from '../attributes.ts';
import { ATTRIBUTE_HEADER_BYTES, ByteBuffer, HEADER_BYTES, LITTLE_ENDIAN, viewOf } from '../codec.ts';
import { NFGENMSG_BYTES } from '../generic.ts';
import type { MessageTest } from './scan.ts';

/** All chains but these. */
export interface ChainFilter {
  readonly kind: 'chains';
  /** As a `ChainNameList` has them. */
  readonly known: Uint8Array;
}

const NFTA_CHAIN_TABLE = 1;
const NFTA_CHAIN_NAME = 3;
const NEWLINE = 10;
const NAMES_PER_STEP = 1000;
const FIRST_BYTES = 1 << 12;

/** Names of chains with their tables, outside of V8's heap. A name has no line break. */
export class ChainNameList extends ByteBuffer {
  constructor() {
    super(FIRST_BYTES);
  }

  add(table: string, chain: string): void {
    const text = `${table} ${chain}`;
    const start = this.reserve(text.length + 1);
    for (let index = 0; index < text.length; index++) this.bytes[start + index] = text.charCodeAt(index);
    // The padding, too.
    this.bytes.fill(NEWLINE, start + text.length, this.used);
  }

  finish(): Uint8Array<ArrayBuffer> {
    return this.bytes.subarray(0, this.used);
  }
}

/** Yields while it is being made. */
export function* chainTest({ known }: ChainFilter): Generator<void, MessageTest> {
  const names = new Set<string>();
  const bytes = Buffer.from(known.buffer, known.byteOffset, known.byteLength);
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf(NEWLINE, start);
    if (end > start) names.add(bytes.toString('latin1', start, end));
    start = end + 1;
    if (names.size % NAMES_PER_STEP === 0) yield;
  }
  let examined = 0;
  return {
    get examined() {
      return examined;
    },
    take: (message) => {
      examined++;
      const view = viewOf(message);
      const own = Buffer.from(message.buffer, message.byteOffset, message.byteLength);
      const table = textOf(own, view, NFTA_CHAIN_TABLE);
      return names.has(`${table} ${textOf(own, view, NFTA_CHAIN_NAME)}`) ? undefined : message;
    },
  };
}

function textOf(message: Buffer, view: DataView, attribute: number): string {
  const at = findAttribute(view, HEADER_BYTES + NFGENMSG_BYTES, message.length, attribute);
  if (at === 0) return '';
  const end = at + view.getUint16(at, LITTLE_ENDIAN) - 1;
  return message.toString('latin1', at + ATTRIBUTE_HEADER_BYTES, end);
}
