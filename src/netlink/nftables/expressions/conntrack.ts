/** What the kernel knows about the packet's connection: `[ ct load dst_ip => reg 1 , dir original ]`. */
import { decodeU8 } from '../../codec.ts';
import { names } from '../names.ts';
import type { Register } from '../registers.ts';
import { type ExpressionCodec, readNumber } from './codec.ts';

const NFTA_CT_DREG = 1;
const NFTA_CT_KEY = 2;
const NFTA_CT_DIRECTION = 3;

export type ConntrackKey =
  | 'state'
  | 'direction'
  | 'status'
  | 'mark'
  | 'protocol'
  | 'proto-src'
  | 'proto-dst'
  | 'ip saddr'
  | 'ip daddr'
  | 'ip6 saddr'
  | 'ip6 daddr';

export interface ConntrackExpression {
  readonly kind: 'ct';
  readonly key: ConntrackKey;
  /** Addresses and ports have one, the rest has none. */
  readonly direction?: 'original' | 'reply';
  readonly into: Register;
}

/** IPS_DST_NAT of linux/netfilter/nf_conntrack_common.h: the bit of `ct status dnat`, in the machine's byte order. */
export const CT_STATUS_DNAT = 0x20;

/** enum nft_ct_keys. Addresses by NFT_CT_SRC_IP and its like, which have a known length: since Linux 4.17. */
const KEYS = names<ConntrackKey>({
  state: 0,
  direction: 1,
  status: 2,
  mark: 3,
  protocol: 10,
  'proto-src': 11,
  'proto-dst': 12,
  'ip saddr': 19,
  'ip daddr': 20,
  'ip6 saddr': 21,
  'ip6 daddr': 22,
});
const DIRECTIONS = names({ original: 0, reply: 1 });

export const conntrack: ExpressionCodec<ConntrackExpression> = {
  name: 'ct',
  write: (writer, { key, direction, into }) => {
    writer.u32be(NFTA_CT_KEY, KEYS.number(key)).u32be(NFTA_CT_DREG, into);
    if (direction) writer.u8(NFTA_CT_DIRECTION, DIRECTIONS.number(direction));
  },
  read: (attributes) => {
    // Without a destination, it changes the connection.
    if (!attributes.has(NFTA_CT_DREG)) return undefined;
    const key = KEYS.name(readNumber(attributes, NFTA_CT_KEY, 'the key of a ct expression'));
    const encoded = attributes.get(NFTA_CT_DIRECTION);
    const direction = encoded && DIRECTIONS.name(decodeU8(encoded));
    if (!key || (encoded && !direction)) return undefined;
    const into = readNumber(attributes, NFTA_CT_DREG, 'the register of a ct expression');
    return { kind: 'ct', key, ...(direction && { direction }), into };
  },
};
