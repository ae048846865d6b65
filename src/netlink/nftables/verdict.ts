/** What becomes of a packet, or which chain goes on with it. */
import {
  type MessageWriter,
  attributesByType,
  decodeString,
  decodeU32be,
  requiredAttribute,
} from '../codec.ts';
import { names } from './names.ts';

const NFTA_VERDICT_CODE = 1;
const NFTA_VERDICT_CHAIN = 2;

export type Verdict =
  | { readonly verdict: 'accept' | 'drop' | 'continue' | 'break' | 'return' }
  | { readonly verdict: 'jump' | 'goto'; readonly chain: string };

/** NF_DROP and NF_ACCEPT of linux/netfilter.h, and enum nft_verdicts, whose numbers are negative. */
export const VERDICTS = names<Verdict['verdict']>({
  drop: 0,
  accept: 1,
  continue: -1 >>> 0,
  break: -2 >>> 0,
  jump: -3 >>> 0,
  goto: -4 >>> 0,
  return: -5 >>> 0,
});

/** The inside of NFTA_DATA_VERDICT. */
export function writeVerdict(writer: MessageWriter, verdict: Verdict): void {
  writer.u32be(NFTA_VERDICT_CODE, VERDICTS.number(verdict.verdict));
  if ('chain' in verdict) writer.string(NFTA_VERDICT_CHAIN, verdict.chain);
}

/** `undefined` for a verdict that has no word here, such as a queue. */
export function decodeVerdict(bytes: Uint8Array): Verdict | undefined {
  const attributes = attributesByType(bytes);
  const code = decodeU32be(requiredAttribute(attributes, NFTA_VERDICT_CODE, 'the code of a verdict'));
  const verdict = VERDICTS.name(code);
  if (verdict !== 'jump' && verdict !== 'goto') return verdict && { verdict };
  const chain = requiredAttribute(attributes, NFTA_VERDICT_CHAIN, `the chain of a ${verdict}`);
  return { verdict, chain: decodeString(chain) };
}
