/** Loads bytes of the packet: `[ payload load 4b @ network header + 16 => reg 1 ]`. */
import { names } from '../names.ts';
import type { Register } from '../registers.ts';
import { type ExpressionCodec, readNumber } from './codec.ts';

const NFTA_PAYLOAD_DREG = 1;
const NFTA_PAYLOAD_BASE = 2;
const NFTA_PAYLOAD_OFFSET = 3;
const NFTA_PAYLOAD_LEN = 4;

export type PayloadBase = 'link' | 'network' | 'transport';

export interface PayloadExpression {
  readonly kind: 'payload';
  readonly base: PayloadBase;
  readonly offset: number;
  readonly bytes: number;
  readonly into: Register;
}

const BASES = names<PayloadBase>({ link: 0, network: 1, transport: 2 });

export const payload: ExpressionCodec<PayloadExpression> = {
  name: 'payload',
  write: (writer, { base, offset, bytes, into }) =>
    writer
      .u32be(NFTA_PAYLOAD_DREG, into)
      .u32be(NFTA_PAYLOAD_BASE, BASES.number(base))
      .u32be(NFTA_PAYLOAD_OFFSET, offset)
      .u32be(NFTA_PAYLOAD_LEN, bytes),
  read: (attributes) => {
    // Without a destination, it writes to the packet.
    if (!attributes.has(NFTA_PAYLOAD_DREG)) return undefined;
    const base = BASES.name(readNumber(attributes, NFTA_PAYLOAD_BASE, 'the base of a payload'));
    if (!base) return undefined;
    return {
      kind: 'payload',
      base,
      offset: readNumber(attributes, NFTA_PAYLOAD_OFFSET, 'the offset of a payload'),
      bytes: readNumber(attributes, NFTA_PAYLOAD_LEN, 'the length of a payload'),
      into: readNumber(attributes, NFTA_PAYLOAD_DREG, 'the register of a payload'),
    };
  },
};
