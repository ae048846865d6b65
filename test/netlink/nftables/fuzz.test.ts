/** Bytes that a kernel sent, and bytes that none would send, for the decoders of nftables. */
import { expect, test } from 'vitest';
import { decodeChain, decodeRule, decodeSet, decodeTable } from '../../../src/netlink/nftables/objects.ts';
import { decodeElements, type SetElement } from '../../../src/netlink/nftables/elements.ts';
import { decodeExpression } from '../../../src/netlink/nftables/expressions.ts';
import { decodeComment, decodeGeneration, namesIn } from '../../../src/netlink/nftables/message.ts';
import { propertiesOf, type SetSpec } from '../../../src/netlink/nftables/setSpec.ts';
import { unhex } from '../../system/support/bytes.ts';
import { type Decoder, decoder, fuzz } from '../support/fuzz.ts';
import { GOLDEN_EXPRESSIONS } from './support/expressions.ts';
import * as golden from './support/golden.ts';

const PLACE = { family: 'ip', table: 't' } as const;

/** What a kernel says, and what it means. */
const DECODERS: readonly Decoder[] = [
  decoder('a table', decodeTable, golden.TABLE, {
    family: 'ip',
    name: 't',
    flags: 0,
    isDormant: false,
    objects: 7,
    comment: 'mine',
  }),
  decoder('a base chain', decodeChain, golden.BASE_CHAIN, {
    ...PLACE,
    name: 'a',
    base: { type: 'nat', hook: 'prerouting', priority: -100, policy: 'accept' },
    isBase: true,
    references: 1,
  }),
  decoder('a plain chain', decodeChain, golden.PLAIN_CHAIN, {
    ...PLACE,
    name: 'b',
    isBase: false,
    references: 2,
  }),
  decoder('a rule', decodeRule, golden.RULE, {
    ...PLACE,
    chain: 'a',
    handle: 8n,
    expressions: [
      { kind: 'payload', base: 'network', offset: 16, bytes: 4, into: 1 },
      { kind: 'lookup', set: 'cidrs', from: 1 },
      { kind: 'verdict', verdict: 'goto', chain: 'b' },
    ],
    comment: 'why',
  }),
  decoder('a map', decodeSet, golden.MAP, {
    ...PLACE,
    ...declared({
      name: 'any-3',
      key: { typeof: ['ip daddr', 'meta l4proto', 'th dport', 'numgen random mod 3'] },
      data: { typeof: ['ip daddr', 'th dport'] },
      counter: true,
      comment: 'pool',
    }),
  }),
  decoder('a set of concatenated intervals', decodeSet, golden.CONCATENATED_INTERVALS, {
    ...PLACE,
    ...declared({ name: 'allowed', key: { type: ['ipv4_addr', 'inet_service'] }, flags: ['interval'] }),
  }),
  decoder('a dynamic map', decodeSet, golden.DYNAMIC_MAP, {
    ...PLACE,
    ...declared({
      name: 'aff',
      key: { type: ['ipv4_addr'] },
      data: { type: ['inet_service'] },
      flags: ['dynamic', 'timeout'],
      size: 10,
    }),
    timeoutMs: 3_600_000,
  }),
  decoder('an element of a map', decodeElements, golden.MAP_ELEMENT, {
    ...PLACE,
    set: 'any-3',
    elements: [
      {
        key: unhex('0a600001 06000000 01bb0000 02000000'),
        data: unhex('0a000003 192b0000'),
        counter: { packets: 0n, bytes: 0n },
        comment: 'default/kubernetes',
      },
    ],
  }),
  decoder('an element that is a range', elementsOf, golden.RANGE_ELEMENT, [
    { key: unhex('0a000000 00500000'), keyEnd: unhex('0affffff 00500000') },
  ]),
  decoder('an element with a verdict', elementsOf, golden.VERDICT_ELEMENT, [
    { key: unhex('0a600002'), verdict: { verdict: 'goto', chain: 'b' }, comment: 'dns' },
  ]),
  decoder('elements that are intervals', elementsOf, golden.INTERVAL_ELEMENTS, [
    { key: unhex('0b000000'), isIntervalEnd: true },
    { key: unhex('0a000000') },
    { key: unhex('00000000'), isIntervalEnd: true },
  ]),
  decoder('an element with a time-out', elementsOf, golden.TIMED_ELEMENT, [
    { key: unhex('0a000001'), data: unhex('0050'), timeoutMs: 180_000, expiresMs: 179_996 },
  ]),
  decoder('a generation', decodeGeneration, golden.GENERATION, {
    id: 2,
    processId: 0x57b0,
    processName: 'nft',
  }),
  decoder(
    'the names in a notification',
    (payload) => namesIn({ type: (10 << 8) | 6, payload }),
    golden.RULE,
    {
      table: 't',
      chain: 'a',
    },
  ),
  decoder('a comment', (bytes) => [decodeComment(bytes)], unhex('0005 6d696e6500'), ['mine']),
  ...GOLDEN_EXPRESSIONS.map(({ line, bytes, value }) => decoder(line, decodeExpression, bytes, value)),
];

function declared(spec: SetSpec): object {
  return { ...propertiesOf(spec), name: spec.name };
}

function elementsOf(payload: Uint8Array): readonly SetElement[] {
  return decodeElements(payload).elements;
}

fuzz(DECODERS);

test.each<[number, Record<string, string>, Uint8Array]>([
  [0, { table: 't' }, golden.TABLE],
  [3, { table: 't', chain: 'a' }, golden.BASE_CHAIN],
  [5, { table: 't', chain: 'b' }, golden.PLAIN_CHAIN],
  [8, { table: 't', chain: 'a' }, golden.RULE],
  [9, { table: 't', set: 'any-3' }, golden.MAP],
  [14, { table: 't', set: 'any-3' }, golden.MAP_ELEMENT],
  [15, {}, golden.GENERATION],
  [18, {}, golden.TABLE],
])('a notification, operation %i: %j', (operation, names, payload) => {
  expect(namesIn({ type: (10 << 8) | operation, payload })).toEqual(names);
  expect(namesIn({ type: (1 << 8) | operation, payload })).toEqual({});
});
