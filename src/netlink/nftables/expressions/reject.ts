/** Answers that nobody is there: `[ reject type 0 code 3 ]`. */
import { decodeU8 } from '../../codec.ts';
import { names } from '../names.ts';
import { type ExpressionCodec, readNumber } from './codec.ts';

const NFTA_REJECT_TYPE = 1;
const NFTA_REJECT_ICMP_CODE = 2;

export interface RejectExpression {
  readonly kind: 'reject';
  /** `icmp` is ICMPv6 in a table of IPv6. */
  readonly with: 'icmp' | 'tcp reset' | 'icmpx';
  readonly code: number;
}

const KINDS = names<RejectExpression['with']>({ icmp: 0, 'tcp reset': 1, icmpx: 2 });

export const reject: ExpressionCodec<RejectExpression> = {
  name: 'reject',
  write: (writer, { with: kind, code }) =>
    writer.u32be(NFTA_REJECT_TYPE, KINDS.number(kind)).u8(NFTA_REJECT_ICMP_CODE, code),
  read: (attributes) => {
    const kind = KINDS.name(readNumber(attributes, NFTA_REJECT_TYPE, 'the kind of a rejection'));
    const code = attributes.get(NFTA_REJECT_ICMP_CODE);
    // The kernel shows no code for a reset.
    return kind && { kind: 'reject', with: kind, code: code ? decodeU8(code) : 0 };
  },
};
