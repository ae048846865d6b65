/** Puts registers into a set: `[ dynset update reg_key 1 set affinity-tcp sreg_data 2 timeout 180000ms ]`. */
import { decodeString, decodeU64be, requiredAttribute } from '../../codec.ts';
import { names } from '../names.ts';
import type { Register } from '../registers.ts';
import { type ExpressionCodec, readNumber, readOptionalNumber } from './codec.ts';

const NFTA_DYNSET_SET_NAME = 1;
const NFTA_DYNSET_SET_ID = 2;
const NFTA_DYNSET_OP = 3;
const NFTA_DYNSET_SREG_KEY = 4;
const NFTA_DYNSET_SREG_DATA = 5;
const NFTA_DYNSET_TIMEOUT = 6;
const NFTA_DYNSET_EXPR = 7;
const NFTA_DYNSET_FLAGS = 9;
const NFTA_DYNSET_EXPRESSIONS = 10;

export interface DynsetExpression {
  readonly kind: 'dynset';
  /** `add` leaves what is there as it is; `update` begins its time again. */
  readonly operation: 'add' | 'update' | 'delete';
  readonly set: string;
  readonly key: Register;
  /** Of a map. */
  readonly data?: Register;
  readonly timeoutMs?: number;
}

const OPERATIONS = names<DynsetExpression['operation']>({ add: 0, update: 1, delete: 2 });

export const dynset: ExpressionCodec<DynsetExpression> = {
  name: 'dynset',
  write: (writer, { operation, set, key, data, timeoutMs }) => {
    writer.u32be(NFTA_DYNSET_SREG_KEY, key);
    if (data !== undefined) writer.u32be(NFTA_DYNSET_SREG_DATA, data);
    writer.u32be(NFTA_DYNSET_OP, OPERATIONS.number(operation)).string(NFTA_DYNSET_SET_NAME, set);
    if (timeoutMs !== undefined) writer.u64be(NFTA_DYNSET_TIMEOUT, BigInt(timeoutMs));
    // nft names sets of the same transaction by number too; the name is enough, and the kernel shows no other.
    writer.u32be(NFTA_DYNSET_SET_ID, 0);
  },
  read: (attributes) => {
    const operation = OPERATIONS.name(readNumber(attributes, NFTA_DYNSET_OP, 'the operation of an update'));
    const hasMore =
      attributes.has(NFTA_DYNSET_EXPR) ||
      attributes.has(NFTA_DYNSET_EXPRESSIONS) ||
      (readOptionalNumber(attributes, NFTA_DYNSET_FLAGS) ?? 0) !== 0;
    if (!operation || hasMore) return undefined;
    const data = readOptionalNumber(attributes, NFTA_DYNSET_SREG_DATA);
    const timeout = attributes.get(NFTA_DYNSET_TIMEOUT);
    const timeoutMs = timeout ? Number(decodeU64be(timeout)) : 0;
    return {
      kind: 'dynset',
      operation,
      set: decodeString(requiredAttribute(attributes, NFTA_DYNSET_SET_NAME, 'the set of an update')),
      key: readNumber(attributes, NFTA_DYNSET_SREG_KEY, 'the key of an update'),
      ...(data !== undefined && { data }),
      // The kernel shows none as zero.
      ...(timeoutMs !== 0 && { timeoutMs }),
    };
  },
};
