/**
 * What the kernel keeps for programs without reading it. The program nft writes single-byte types and lengths into it,
 * and reads comments, and how a set is to be printed, out of it. Numbers from libnftnl/udata.h.
 */
import { isAscii, malformedMessage } from '../codec.ts';
import { decodeText } from '../kinds.ts';

/** Of tables, chains, rules and elements alike. */
const UDATA_COMMENT = 0;
/** More than this, nft refuses to read back: `comment too long, 128 characters maximum allowed`. */
const COMMENT_MAX_BYTES = 128;

const encoder = new TextEncoder();

export interface UserDatum {
  readonly type: number;
  readonly value: Uint8Array;
}

export function encodeUserData(data: readonly UserDatum[]): Uint8Array {
  const bytes = new Uint8Array(data.reduce((total, { value }) => total + 2 + value.length, 0));
  let offset = 0;
  for (const { type, value } of data) {
    if (value.length > 0xff) throw malformedMessage(`user data of ${value.length} bytes`);
    bytes.set([type, value.length], offset);
    bytes.set(value, offset + 2);
    offset += 2 + value.length;
  }
  return bytes;
}

/** `undefined` for what does not follow the convention: another program's. */
export function decodeUserData(bytes: Uint8Array): readonly UserDatum[] | undefined {
  const data: UserDatum[] = [];
  for (let offset = 0; offset < bytes.length; ) {
    const [type, length] = bytes.subarray(offset);
    if (type === undefined || length === undefined || offset + 2 + length > bytes.length) return undefined;
    data.push({ type, value: bytes.subarray(offset + 2, offset + 2 + length) });
    offset += 2 + length;
  }
  return data;
}

/** NUL-terminated. What is too long is cut between two characters. */
export function commentText(comment: string): Uint8Array {
  const bytes = new Uint8Array(COMMENT_MAX_BYTES + 1);
  const { written } = encoder.encodeInto(comment, bytes.subarray(0, COMMENT_MAX_BYTES));
  return bytes.subarray(0, written + 1);
}

export function encodeComment(comment: string): Uint8Array {
  const { length } = comment;
  if (length > COMMENT_MAX_BYTES || !isAscii(comment))
    return encodeUserData([{ type: UDATA_COMMENT, value: commentText(comment) }]);
  // A start has tens of thousands of these.
  const bytes = new Uint8Array(length + 3);
  bytes[1] = length + 1;
  for (let index = 0; index < length; index++) bytes[index + 2] = comment.charCodeAt(index);
  return bytes;
}

export function decodeComment(userData: Uint8Array): string | undefined {
  const comment = decodeUserData(userData)?.find(({ type }) => type === UDATA_COMMENT);
  return comment && decodeText(comment.value);
}
