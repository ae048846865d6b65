/** Counts what comes by: `[ counter pkts 0 bytes 0 ]`. */
import { decodeU64be, requiredAttribute } from '../../codec.ts';
import type { ExpressionCodec } from './codec.ts';

const NFTA_COUNTER_BYTES = 1;
const NFTA_COUNTER_PACKETS = 2;

export interface CounterExpression {
  readonly kind: 'counter';
  readonly packets: bigint;
  readonly bytes: bigint;
}

export const counter: ExpressionCodec<CounterExpression> = {
  name: 'counter',
  write: (writer, { packets, bytes }) =>
    writer.u64be(NFTA_COUNTER_BYTES, bytes).u64be(NFTA_COUNTER_PACKETS, packets),
  read: (attributes) => ({
    kind: 'counter',
    packets: decodeU64be(requiredAttribute(attributes, NFTA_COUNTER_PACKETS, 'the packets of a counter')),
    bytes: decodeU64be(requiredAttribute(attributes, NFTA_COUNTER_BYTES, 'the bytes of a counter')),
  }),
};
