/** What single operations send, and expressions without a rule around them. */
import { MessageWriter, decodeMessages, viewOf } from '../../../../src/netlink/codec.ts';
import {
  type Expression,
  expressionKind,
  expressionList,
} from '../../../../src/netlink/nftables/expressions.ts';
import { type NftOperation, requestsOf } from '../../../../src/netlink/nftables/transaction.ts';

/** The payloads of its messages, of which there is one at least. */
export function sent(operation: NftOperation): readonly [Uint8Array, ...Uint8Array[]] {
  const writer = new MessageWriter();
  for (const { type, flags, payload } of requestsOf(operation, 0))
    writer.message({ type, flags, sequence: 1 }, payload);
  const [first, ...others] = decodeMessages(writer.finish()).map(({ payload }) => payload);
  if (!first) throw new Error('no message');
  return [first, ...others];
}

const NFTA_LIST_ELEM = 1;

export function writeExpressions(writer: MessageWriter, expressions: readonly Expression[]): void {
  for (const expression of expressions) expressionKind.write(writer, NFTA_LIST_ELEM, expression);
}

export function decodeExpressions(bytes: Uint8Array): readonly Expression[] {
  const read = expressionList.read(viewOf(bytes), 0, bytes.length, {});
  return typeof read === 'object' ? read : [];
}
