/** The messages of single operations, and expressions without a rule around them. */
import { type MessageWriter, viewOf } from '../../../../src/netlink/codec.ts';
import {
  type Expression,
  expressionKind,
  expressionList,
} from '../../../../src/netlink/nftables/expressions.ts';
import { type NftOperation, requestsOf } from '../../../../src/netlink/nftables/transaction.ts';
import type { NetlinkRequest } from '../../../../src/netlink/socket.ts';

type Operation<K extends NftOperation['kind']> = Extract<NftOperation, { readonly kind: K }>;

const one =
  <K extends NftOperation['kind']>() =>
  (operation: Operation<K>, id = 1): NetlinkRequest => {
    const [message] = requestsOf(operation, id - 1);
    if (!message) throw new Error('no message');
    return message;
  };

export const newTable = one<'addTable'>();
export const deleteTable = one<'deleteTable'>();
export const newChain = one<'addChain'>();
export const newRule = one<'addRule'>();
export const deleteRule = one<'deleteRule'>();
export const newSet = one<'addSet'>();

export function newElements(operation: Operation<'addElements'>): readonly NetlinkRequest[] {
  return requestsOf(operation, 0);
}

export function deleteElements(operation: Operation<'deleteElements'>): readonly NetlinkRequest[] {
  return requestsOf(operation, 0);
}

const NFTA_LIST_ELEM = 1;

export function writeExpressions(writer: MessageWriter, expressions: readonly Expression[]): void {
  for (const expression of expressions) expressionKind.write(writer, NFTA_LIST_ELEM, expression);
}

export function decodeExpressions(bytes: Uint8Array): readonly Expression[] {
  const read = expressionList.read(viewOf(bytes), 0, bytes.length, {});
  return typeof read === 'object' ? read : [];
}
