/** Gives a connection another destination or source: `[ nat dnat ip addr_min reg 1 proto_min reg 9 ]`. */
import { FAMILIES } from '../message.ts';
import { names } from '../names.ts';
import type { Register } from '../registers.ts';
import { type ExpressionCodec, readNumber, readOptionalNumber } from './codec.ts';
import { NAT_FLAGS, NF_NAT_RANGE_MAP_IPS, NF_NAT_RANGE_PROTO_SPECIFIED, type NatFlag } from './natFlags.ts';

const NFTA_NAT_TYPE = 1;
const NFTA_NAT_FAMILY = 2;
const NFTA_NAT_REG_ADDR_MIN = 3;
const NFTA_NAT_REG_ADDR_MAX = 4;
const NFTA_NAT_REG_PROTO_MIN = 5;
const NFTA_NAT_REG_PROTO_MAX = 6;
const NFTA_NAT_FLAGS = 7;

export interface NatExpression {
  readonly kind: 'nat';
  readonly direction: 'snat' | 'dnat';
  readonly family: 'ip' | 'ip6';
  readonly address?: Register;
  readonly port?: Register;
  readonly flags: readonly NatFlag[];
}

const DIRECTIONS = names<NatExpression['direction']>({ snat: 0, dnat: 1 });

export const nat: ExpressionCodec<NatExpression> = {
  name: 'nat',
  write: (writer, { direction, family, address, port, flags }) => {
    writer.u32be(NFTA_NAT_TYPE, DIRECTIONS.number(direction)).u32be(NFTA_NAT_FAMILY, FAMILIES.number(family));
    if (address !== undefined) writer.u32be(NFTA_NAT_REG_ADDR_MIN, address);
    if (port !== undefined) writer.u32be(NFTA_NAT_REG_PROTO_MIN, port);
    if (flags.length > 0) writer.u32be(NFTA_NAT_FLAGS, NAT_FLAGS.bits(flags));
  },
  read: (attributes) => {
    const number = (type: number): number | undefined => readOptionalNumber(attributes, type);
    const direction = DIRECTIONS.name(readNumber(attributes, NFTA_NAT_TYPE, 'the direction of a nat'));
    const family = FAMILIES.name(readNumber(attributes, NFTA_NAT_FAMILY, 'the family of a nat'));
    const address = number(NFTA_NAT_REG_ADDR_MIN);
    const port = number(NFTA_NAT_REG_PROTO_MIN);
    const implied = NF_NAT_RANGE_MAP_IPS | NF_NAT_RANGE_PROTO_SPECIFIED;
    const flags = NAT_FLAGS.flags((number(NFTA_NAT_FLAGS) ?? 0) & ~implied);
    // The kernel shows a range of one, also when it was given none.
    const isRange =
      (number(NFTA_NAT_REG_ADDR_MAX) ?? address) !== address ||
      (number(NFTA_NAT_REG_PROTO_MAX) ?? port) !== port;
    if (!direction || !flags || isRange || (family !== 'ip' && family !== 'ip6')) return undefined;
    return {
      kind: 'nat',
      direction,
      family,
      ...(address !== undefined && { address }),
      ...(port !== undefined && { port }),
      flags,
    };
  },
};
