/** Gives a connection the address of the link that it leaves by: `[ masq flags 0x10 ]`. */
import { type ExpressionCodec, readOptionalNumber } from './codec.ts';
import { NAT_FLAGS, type NatFlag } from './natFlags.ts';

const NFTA_MASQ_FLAGS = 1;
const NFTA_MASQ_REG_PROTO_MIN = 2;

export interface MasqueradeExpression {
  readonly kind: 'masquerade';
  readonly flags: readonly NatFlag[];
}

export const masquerade: ExpressionCodec<MasqueradeExpression> = {
  name: 'masq',
  write: (writer, { flags }) => {
    if (flags.length > 0) writer.u32be(NFTA_MASQ_FLAGS, NAT_FLAGS.bits(flags));
  },
  read: (attributes) => {
    // A range of ports has no word here.
    if (attributes.has(NFTA_MASQ_REG_PROTO_MIN)) return undefined;
    const flags = NAT_FLAGS.flags(readOptionalNumber(attributes, NFTA_MASQ_FLAGS) ?? 0);
    return flags && { kind: 'masquerade', flags };
  },
};
