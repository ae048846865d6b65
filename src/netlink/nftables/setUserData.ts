/** What nft wants to know of a set to print it, kept by the kernel. Numbers from libnftnl/udata.h. */
import { byteOrderOf } from './dataTypes.ts';
import { type Fields, type SetSpec, isConcatenation } from './setSpec.ts';
import {
  UNNAMED_CONCATENATION,
  VERDICT_DATA,
  encodeSelectors,
  number,
  selectorByteOrder,
} from './selectors.ts';
import { type UserDatum, commentText, decodeText, decodeUserData, encodeUserData } from './userData.ts';

const UDATA_SET_KEYBYTEORDER = 0;
const UDATA_SET_DATABYTEORDER = 1;
const UDATA_SET_MERGE_ELEMENTS = 2;
const UDATA_SET_KEY_TYPEOF = 3;
const UDATA_SET_DATA_TYPEOF = 4;
const UDATA_SET_DATA_INTERVAL = 6;
const UDATA_SET_COMMENT = 7;

/** The same bytes that nft would have the kernel keep. */
export function encodeSetUserData({ key, data, mergesElements, comment }: SetSpec): Uint8Array {
  const entries: UserDatum[] = [number(UDATA_SET_KEYBYTEORDER, byteOrder(key))];
  if (data) entries.push(number(UDATA_SET_DATABYTEORDER, data === 'verdict' ? 0 : byteOrder(data)));
  if (mergesElements) entries.push(number(UDATA_SET_MERGE_ELEMENTS, 1));
  const keyTypeof = typeofFields(key);
  if (keyTypeof) entries.push({ type: UDATA_SET_KEY_TYPEOF, value: keyTypeof });
  const dataTypeof = data && typeofData(key, data);
  if (dataTypeof) entries.push({ type: UDATA_SET_DATA_TYPEOF, value: dataTypeof });
  if (data) entries.push(number(UDATA_SET_DATA_INTERVAL, 0));
  if (comment !== undefined) entries.push({ type: UDATA_SET_COMMENT, value: commentText(comment) });
  return encodeUserData(entries);
}

export function decodeSetComment(userData: Uint8Array): string | undefined {
  const comment = decodeUserData(userData)?.find(({ type }) => type === UDATA_SET_COMMENT);
  return comment && decodeText(comment.value);
}

function byteOrder(fields: Fields): number {
  return 'type' in fields ? byteOrderOf(fields.type) : selectorByteOrder(fields.typeof);
}

function typeofFields(fields: Fields): Uint8Array | undefined {
  if ('typeof' in fields) return encodeSelectors(fields.typeof);
  return isConcatenation(fields) ? UNNAMED_CONCATENATION : undefined;
}

function typeofData(key: Fields, data: Fields | 'verdict'): Uint8Array | undefined {
  if (data !== 'verdict') return typeofFields(data);
  return 'typeof' in key ? VERDICT_DATA : undefined;
}
