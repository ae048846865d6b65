/** The inside of NFTA_RULE_EXPRESSIONS, as expressions. */
import { viewOf } from '../../../../../src/netlink/codec.ts';
import { type Expression, expressionList } from '../../../../../src/netlink/nftables/expressions.ts';

export function expressionsOf(bytes: Uint8Array): readonly Expression[] {
  const expressions = expressionList.read(viewOf(bytes), 0, bytes.length, {});
  if (!Array.isArray(expressions)) throw new Error('no list of expressions');
  return expressions;
}
