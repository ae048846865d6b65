/** All expressions. A rule is a list of them: each passes the packet on to the next, or ends the rule. */
import {
  type MessageWriter,
  attributesByType,
  decodeAttributes,
  decodeString,
  requiredAttribute,
} from '../../codec.ts';
import { type BitwiseExpression, bitwise } from './bitwise.ts';
import { type ByteorderExpression, byteorder } from './byteorder.ts';
import type { ExpressionCodec } from './codec.ts';
import { type CompareExpression, compare } from './compare.ts';
import { type ConntrackExpression, conntrack } from './conntrack.ts';
import { type CounterExpression, counter } from './counter.ts';
import { type DynsetExpression, dynset } from './dynset.ts';
import { type FibExpression, fib } from './fib.ts';
import { type ImmediateExpression, type VerdictExpression, immediate } from './immediate.ts';
import { type LookupExpression, lookup } from './lookup.ts';
import { type MasqueradeExpression, masquerade } from './masquerade.ts';
import { type MetaExpression, type SetMetaExpression, meta } from './meta.ts';
import { type NatExpression, nat } from './nat.ts';
import { type NumgenExpression, numgen } from './numgen.ts';
import { type PayloadExpression, payload } from './payload.ts';
import { type RejectExpression, reject } from './reject.ts';

const NFTA_LIST_ELEM = 1;
const NFTA_EXPR_NAME = 1;
const NFTA_EXPR_DATA = 2;

/** What has no word here, as it came from the kernel. */
export interface OtherExpression {
  readonly kind: 'other';
  readonly name: string;
  readonly data: Uint8Array;
}

export type Expression =
  | BitwiseExpression
  | ByteorderExpression
  | CompareExpression
  | ConntrackExpression
  | CounterExpression
  | DynsetExpression
  | FibExpression
  | ImmediateExpression
  | LookupExpression
  | MasqueradeExpression
  | MetaExpression
  | NatExpression
  | NumgenExpression
  | OtherExpression
  | PayloadExpression
  | RejectExpression
  | SetMetaExpression
  | VerdictExpression;

const READERS: ReadonlyMap<string, Pick<ExpressionCodec<Expression>, 'read'>> = new Map(
  [
    bitwise,
    byteorder,
    compare,
    conntrack,
    counter,
    dynset,
    fib,
    immediate,
    lookup,
    masquerade,
    meta,
    nat,
    numgen,
    payload,
    reject,
  ].map(({ name, read }) => [name, { read }]),
);

/** The expressions of a rule. */
export function writeExpressions(writer: MessageWriter, expressions: readonly Expression[]): void {
  for (const expression of expressions)
    writer.nested(NFTA_LIST_ELEM, (inner) => writeExpression(inner, expression));
}

export function decodeExpressions(bytes: Uint8Array): readonly Expression[] {
  return decodeAttributes(bytes).map(({ value }) => decodeExpression(value));
}

export function writeExpression(writer: MessageWriter, expression: Expression): void {
  switch (expression.kind) {
    case 'bitwise':
      return write(writer, bitwise, expression);
    case 'byteorder':
      return write(writer, byteorder, expression);
    case 'compare':
      return write(writer, compare, expression);
    case 'counter':
      return write(writer, counter, expression);
    case 'ct':
      return write(writer, conntrack, expression);
    case 'dynset':
      return write(writer, dynset, expression);
    case 'fib':
      return write(writer, fib, expression);
    case 'immediate':
    case 'verdict':
      return write(writer, immediate, expression);
    case 'lookup':
      return write(writer, lookup, expression);
    case 'masquerade':
      return write(writer, masquerade, expression);
    case 'meta':
    case 'set meta':
      return write(writer, meta, expression);
    case 'nat':
      return write(writer, nat, expression);
    case 'numgen':
      return write(writer, numgen, expression);
    case 'payload':
      return write(writer, payload, expression);
    case 'reject':
      return write(writer, reject, expression);
    case 'other':
      writer.string(NFTA_EXPR_NAME, expression.name);
      writer.nested(NFTA_EXPR_DATA, (data) => data.raw(expression.data));
  }
}

export function decodeExpression(bytes: Uint8Array): Expression {
  const attributes = attributesByType(bytes);
  const name = decodeString(requiredAttribute(attributes, NFTA_EXPR_NAME, 'the name of an expression'));
  const data = attributes.get(NFTA_EXPR_DATA) ?? new Uint8Array();
  return READERS.get(name)?.read(attributesByType(data)) ?? { kind: 'other', name, data };
}

function write<Value>(writer: MessageWriter, codec: ExpressionCodec<Value>, value: Value): void {
  writer.string(NFTA_EXPR_NAME, codec.name);
  writer.nested(NFTA_EXPR_DATA, (data) => codec.write(data, value));
}
