/** The elements of sets and maps. */
import {
  NLM_F_CREATE,
  NLM_F_EXCL,
  decodeAttributes,
  decodeString,
  decodeU32be,
  decodeU64be,
  malformed,
  requiredAttribute,
} from '../codec.ts';
import type { NetlinkRequest } from '../socket.ts';
import { decodeData, decodeValue } from './data.ts';
import {
  ElementList,
  NFTA_SET_ELEM_DATA,
  NFTA_SET_ELEM_FLAGS,
  NFTA_SET_ELEM_KEY,
  NFTA_SET_ELEM_KEY_END,
  NFTA_SET_ELEM_TIMEOUT,
  NFTA_SET_ELEM_USERDATA,
  NFT_SET_ELEM_INTERVAL_END,
} from './elementList.ts';
import { decodeExpression } from './expressions/expression.ts';
import {
  NFT_MSG_DELSETELEM,
  NFT_MSG_GETSETELEM,
  NFT_MSG_NEWSETELEM,
  type NftFamily,
  type NftMessage,
  type TablePlace,
  nftMessage,
  received,
} from './message.ts';
import { decodeComment } from './userData.ts';
import type { Verdict } from './verdict.ts';

const NFTA_SET_ELEM_LIST_TABLE = 1;
const NFTA_SET_ELEM_LIST_SET = 2;
const NFTA_SET_ELEM_LIST_ELEMENTS = 3;
const NFTA_SET_ELEM_EXPIRATION = 5;
const NFTA_SET_ELEM_EXPR = 7;
const NFT_SET_ELEM_CATCHALL = 2;

export interface SetPlace extends TablePlace {
  readonly set: string;
}

/** An element that is there already stays as it is; one that has other data is EEXIST. */
export interface NewElements extends SetPlace {
  readonly kind: 'new elements';
  readonly elements: ElementList;
  /** EEXIST for any that is there already. */
  readonly isExclusive?: true;
}

/** Refused with ENOENT when one of them is not there. Only keys are looked at, and whether they end an interval. */
export interface DeleteElements extends SetPlace {
  readonly kind: 'delete elements';
  readonly elements: ElementList;
}

/** All elements; the set stays. */
export interface FlushSet extends SetPlace {
  readonly kind: 'flush set';
}

export interface SetElement {
  /** With its padding, if it is a concatenation. Empty for the element that stands for all others. */
  readonly key: Uint8Array;
  /** The last key of a range, in a set of concatenations. */
  readonly keyEnd?: Uint8Array;
  /** The key is the first beyond an interval. */
  readonly isIntervalEnd?: true;
  readonly data?: Uint8Array;
  readonly verdict?: Verdict;
  readonly comment?: string;
  readonly timeoutMs?: number;
  /** How long it has still to live. */
  readonly expiresMs?: number;
  readonly counter?: { readonly packets: bigint; readonly bytes: bigint };
}

export interface ElementsOfSet {
  readonly family: NftFamily | undefined;
  readonly table: string;
  readonly set: string;
  readonly elements: readonly SetElement[];
}

export function newElements({ elements, isExclusive, ...place }: NewElements): readonly NftMessage[] {
  const flags = NLM_F_CREATE | (isExclusive ? NLM_F_EXCL : 0);
  return elementMessages(NFT_MSG_NEWSETELEM, flags, place, elements);
}

export function deleteElements({ elements, ...place }: DeleteElements): readonly NftMessage[] {
  return elementMessages(NFT_MSG_DELSETELEM, 0, place, elements);
}

export function flushSet({ family, table, set }: FlushSet): NftMessage {
  return nftMessage(NFT_MSG_DELSETELEM, 0, family, (writer) =>
    writer.string(NFTA_SET_ELEM_LIST_TABLE, table).string(NFTA_SET_ELEM_LIST_SET, set),
  );
}

/** To be asked with `dump`; each message of the answer has some. Refused with ENOENT where there is no such set. */
export function getElements({ family, table, set }: SetPlace): NetlinkRequest {
  return nftMessage(NFT_MSG_GETSETELEM, 0, family, (writer) =>
    writer.string(NFTA_SET_ELEM_LIST_TABLE, table).string(NFTA_SET_ELEM_LIST_SET, set),
  );
}

/** For a few, or for those that were read: what the kernel counts is left out. */
export function elementList(elements: Iterable<SetElement>): ElementList {
  const list = new ElementList();
  for (const { key, keyEnd, isIntervalEnd, data, verdict, comment, timeoutMs } of elements) {
    list.begin().raw(key);
    if (keyEnd) list.rangeEnd().raw(keyEnd);
    if (data) list.data().raw(data);
    if (verdict) list.verdict(verdict);
    if (isIntervalEnd) list.intervalEnd();
    if (timeoutMs !== undefined) list.timeout(timeoutMs);
    if (comment !== undefined) list.comment(comment);
    list.end();
  }
  return list;
}

export function decodeElements(payload: Uint8Array): ElementsOfSet {
  const { family, attributes } = received(payload);
  const list = decodeAttributes(attributes.get(NFTA_SET_ELEM_LIST_ELEMENTS) ?? new Uint8Array());
  return {
    family,
    table: decodeString(requiredAttribute(attributes, NFTA_SET_ELEM_LIST_TABLE, 'the table of elements')),
    set: decodeString(requiredAttribute(attributes, NFTA_SET_ELEM_LIST_SET, 'the set of elements')),
    elements: list.map(({ value }) => decodeElement(value)),
  };
}

function decodeElement(bytes: Uint8Array): SetElement {
  const element: { -readonly [Property in keyof SetElement]?: SetElement[Property] } = {};
  for (const { type, value } of decodeAttributes(bytes)) {
    switch (type) {
      case NFTA_SET_ELEM_KEY:
        element.key = decodeValue(value);
        break;
      case NFTA_SET_ELEM_KEY_END:
        element.keyEnd = decodeValue(value);
        break;
      case NFTA_SET_ELEM_DATA: {
        const data = decodeData(value);
        if (data.kind === 'value') element.data = data.value;
        else if (data.kind === 'verdict') element.verdict = data.verdict;
        break;
      }
      case NFTA_SET_ELEM_FLAGS: {
        const flags = decodeU32be(value);
        if ((flags & NFT_SET_ELEM_INTERVAL_END) !== 0) element.isIntervalEnd = true;
        if ((flags & NFT_SET_ELEM_CATCHALL) !== 0) element.key = new Uint8Array();
        break;
      }
      case NFTA_SET_ELEM_TIMEOUT:
        element.timeoutMs = Number(decodeU64be(value));
        break;
      case NFTA_SET_ELEM_EXPIRATION:
        element.expiresMs = Number(decodeU64be(value));
        break;
      case NFTA_SET_ELEM_USERDATA: {
        const comment = decodeComment(value);
        if (comment !== undefined) element.comment = comment;
        break;
      }
      case NFTA_SET_ELEM_EXPR: {
        const expression = decodeExpression(value);
        if (expression.kind === 'counter')
          element.counter = { packets: expression.packets, bytes: expression.bytes };
      }
    }
  }
  const { key } = element;
  if (!key) throw malformed('the key of an element is missing');
  return { ...element, key };
}

function elementMessages(
  operation: number,
  flags: number,
  { family, table, set }: SetPlace,
  elements: ElementList,
): readonly NftMessage[] {
  return Array.from(elements.messages(), (bytes) =>
    nftMessage(operation, flags, family, (writer) =>
      writer
        .string(NFTA_SET_ELEM_LIST_TABLE, table)
        .string(NFTA_SET_ELEM_LIST_SET, set)
        .nested(NFTA_SET_ELEM_LIST_ELEMENTS, (list) => list.raw(bytes)),
    ),
  );
}
