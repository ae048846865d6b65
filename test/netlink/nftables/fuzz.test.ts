/** Bytes that no kernel would send, for the decoders of nftables. */
import { MessageWriter } from '../../../src/netlink/codec.ts';
import { decodeChain, decodeRule, decodeSet, decodeTable } from '../../../src/netlink/nftables/objects.ts';
import { decodeElements } from '../../../src/netlink/nftables/elements.ts';
import { decodeExpression } from '../../../src/netlink/nftables/expressions.ts';
import { decodeGeneration } from '../../../src/netlink/nftables/message.ts';
import { decodeNotification } from '../../../src/netlink/nftables/notifications.ts';
import { decodeComment } from '../../../src/netlink/nftables/message.ts';
import { RuleDigester } from '../../../src/netlink/nftables/ruleDigest.ts';
import { unhex } from '../../system/support/bytes.ts';
import { type Decoder, fuzz } from '../support/fuzz.ts';
import { GOLDEN_EXPRESSIONS } from './support/expressions.ts';
import * as golden from './support/golden.ts';

const decoder = (name: string, decode: Decoder['decode'], bytes: Uint8Array): Decoder => ({
  name,
  decode,
  golden: bytes,
});

/** The expressions of a rule. */
const RULE = GOLDEN_EXPRESSIONS.slice(0, 3)
  .reduce((writer, { bytes }) => writer.attribute(1, bytes), new MessageWriter(256, 0))
  .finish();

const DECODERS: readonly Decoder[] = [
  decoder('a table', decodeTable, golden.TABLE),
  decoder('a base chain', decodeChain, golden.BASE_CHAIN),
  decoder('a plain chain', decodeChain, golden.PLAIN_CHAIN),
  decoder('a rule', decodeRule, golden.RULE),
  decoder('a map', decodeSet, golden.MAP),
  decoder('a set of concatenated intervals', decodeSet, golden.CONCATENATED_INTERVALS),
  decoder('a dynamic map', decodeSet, golden.DYNAMIC_MAP),
  decoder('an element of a map', decodeElements, golden.MAP_ELEMENT),
  decoder('an element that is a range', decodeElements, golden.RANGE_ELEMENT),
  decoder('an element with a verdict', decodeElements, golden.VERDICT_ELEMENT),
  decoder('elements that are intervals', decodeElements, golden.INTERVAL_ELEMENTS),
  decoder('an element with a time-out', decodeElements, golden.TIMED_ELEMENT),
  decoder('a generation', decodeGeneration, golden.GENERATION),
  decoder('news', (payload) => decodeNotification({ type: (10 << 8) | 6, payload }), golden.RULE),
  decoder('a rule, by its digest', (bytes) => [new RuleDigester().digest(bytes)], RULE),
  decoder('a comment', (bytes) => [decodeComment(bytes)], unhex('0005 6d696e6500')),
  ...GOLDEN_EXPRESSIONS.map(({ line, bytes }) => decoder(line, decodeExpression, bytes)),
];

fuzz(DECODERS);
