/** What the kernel knows about a packet beside its bytes: `[ meta load l4proto => reg 1 ]`, `[ meta set mark with reg 1 ]`. */
import { names } from '../names.ts';
import type { Register } from '../registers.ts';
import { type ExpressionCodec, readNumber, readOptionalNumber } from './codec.ts';

const NFTA_META_DREG = 1;
const NFTA_META_KEY = 2;
const NFTA_META_SREG = 3;

export type MetaKey = 'protocol' | 'mark' | 'iif' | 'oif' | 'iifname' | 'oifname' | 'nfproto' | 'l4proto';

export interface MetaExpression {
  readonly kind: 'meta';
  readonly key: MetaKey;
  readonly into: Register;
}

export interface SetMetaExpression {
  readonly kind: 'set meta';
  readonly key: MetaKey;
  readonly from: Register;
}

/** enum nft_meta_keys */
export const META_KEYS = names<MetaKey>({
  protocol: 1,
  mark: 3,
  iif: 4,
  oif: 5,
  iifname: 6,
  oifname: 7,
  nfproto: 15,
  l4proto: 16,
});

export const meta: ExpressionCodec<MetaExpression | SetMetaExpression> = {
  name: 'meta',
  write: (writer, expression) => {
    writer.u32be(NFTA_META_KEY, META_KEYS.number(expression.key));
    if (expression.kind === 'meta') writer.u32be(NFTA_META_DREG, expression.into);
    else writer.u32be(NFTA_META_SREG, expression.from);
  },
  read: (attributes) => {
    const key = META_KEYS.name(readNumber(attributes, NFTA_META_KEY, 'the key of a meta expression'));
    if (!key) return undefined;
    const from = readOptionalNumber(attributes, NFTA_META_SREG);
    if (from !== undefined) return { kind: 'set meta', key, from };
    const into = readNumber(attributes, NFTA_META_DREG, 'the register of a meta expression');
    return { kind: 'meta', key, into };
  },
};
