/** Tables, chains, rules, sets and elements: as bytes that mean a line of nft, and there and back. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Ip } from '../../../src/model/ip.ts';
import { decodeChain, decodeRule, decodeSet, decodeTable } from '../../../src/netlink/nftables/objects.ts';
import { ElementList, decodeElements, getElements } from '../../../src/netlink/nftables/elements.ts';
import { elementList } from './listOf.ts';
import { propertiesOf } from '../../../src/netlink/nftables/setSpec.ts';
import { type NftOperation, requestsOf } from '../../../src/netlink/nftables/transaction.ts';
import { inWords, requestHex, unhex } from '../../system/support/bytes.ts';
import { baseChain, comment, expressions, name, setElement, setSpec } from './support/arbitraries.ts';
import { sent } from './support/messages.ts';

const PLACE = { family: 'ip', table: 't' } as const;

const K8S = new ElementList();
K8S.begin()
  .ip('10.96.0.1' as Ip)
  .protocol('TCP')
  .port(443)
  .index(2);
K8S.data()
  .ip('10.0.0.3' as Ip)
  .port(6443)
  .comment('k8s')
  .end();
const INTERVAL = elementList([{ key: unhex('0a000000') }, { key: unhex('0b000000'), isIntervalEnd: true }]);
const NAT = { type: 'nat', hook: 'prerouting', priority: -100, policy: 'accept' } as const;
const RANGES = { name: 's', key: { type: ['ipv4_addr', 'inet_service'] }, flags: ['interval'] } as const;

it.each<[line: string, operation: NftOperation, bytes: string]>([
  [
    'nft add table ip t { comment "mine"; }',
    { kind: 'addTable', ...PLACE, comment: 'mine' }, // NEWTABLE, create; NAME "t", FLAGS 0, USERDATA { comment "mine" }
    `30000000 000a0004 01000000 00000000 02000000
     06000100 74000000 08000200 00000000 0b000600 00056d69 6e650000`,
  ],
  [
    'nft add table ip t { flags owner; }',
    { kind: 'addTable', ...PLACE, isOwned: true },
    '24000000 000a0004 01000000 00000000 02000000 06000100 74000000 08000200 00000002',
  ],
  [
    'nft delete table ip t',
    { kind: 'deleteTable', ...PLACE },
    '1c000000 020a0000 01000000 00000000 02000000 06000100 74000000',
  ],
  [
    'nft add chain ip t a { type nat hook prerouting priority -100; policy accept; }',
    { kind: 'addChain', ...PLACE, chain: 'a', base: NAT }, // HOOK { HOOKNUM 0, PRIORITY -100 }, POLICY accept, TYPE "nat"
    `48000000 030a0004 01000000 00000000 02000000 06000100 74000000 06000300 61000000
     14000480 08000100 00000000 08000200 ffffff9c 08000500 00000001 08000700 6e617400`,
  ],
  [
    'nft add rule ip t a drop',
    {
      kind: 'addRule',
      ...PLACE,
      chain: 'a',
      expressions: [{ kind: 'verdict', verdict: 'drop' }],
    },
    // NEWRULE, create, append; EXPRESSIONS { ELEM { NAME "immediate", DATA { DREG 0, DATA { VERDICT { CODE 0 } } } } }
    `58000000 060a000c 01000000 00000000 02000000 06000100 74000000 06000200 61000000
     34000480 30000180 0e000100 696d6d65 64696174 65000000 1c000280 08000100 00000000
     10000280 0c000280 08000100 00000000`,
  ],
  [
    'nft add set ip t s { type ipv4_addr . inet_service; flags interval; }',
    { kind: 'addSet', ...PLACE, set: RANGES },
    // FLAGS interval, concatenation; KEY_TYPE 7 << 6 | 13, KEY_LEN 8, ID 1; DESC { CONCAT { FIELD { LEN 4 }, FIELD { LEN 2 } } };
    // USERDATA { byte order none, key is a concatenation }
    `78000000 090a0004 01000000 00000000 02000000 06000100 74000000 06000200 73000000
     08000300 00000084 08000400 000001cd 08000500 00000008 08000a00 00000001
     20000980 1c000280 0c000180 08000100 00000004 0c000180 08000100 00000002
     14000d00 00040000 00000308 00040d00 00000100`,
  ],
  [
    'nft add element ip t m { 10.96.0.1 . tcp . 443 . 2 comment "k8s" : 10.0.0.3 . 6443 }',
    { kind: 'addElements', ...PLACE, set: 'm', elements: K8S },
    // ELEMENTS { ELEM { KEY { VALUE address, protocol, port, index }, DATA { VALUE address, port }, USERDATA } }
    `60000000 0c0a0004 01000000 00000000 02000000 06000100 74000000 06000200 6d000000
     3c000380 38000180 18000180 14000100 0a600001 06000000 01bb0000 02000000
     10000280 0c000100 0a000003 192b0000 0a000600 00046b38 73000000`,
  ],
  [
    'nft delete element ip t s { 10.0.0.0/8 }, where the set has intervals',
    { kind: 'deleteElements', ...PLACE, set: 's', elements: INTERVAL }, // ELEM { KEY 10.0.0.0 }, ELEM { KEY 11.0.0.0, FLAGS end }
    `50000000 0e0a0000 01000000 00000000 02000000 06000100 74000000 06000200 73000000
     2c000380 10000180 0c000180 08000100 0a000000 18000180 0c000180 08000100 0b000000 08000300 00000001`,
  ],
])('%s', (_, operation, bytes) => {
  expect(requestsOf(operation, 0).map(requestHex)).toEqual([inWords(bytes)]);
});

it('nft list set ip t s', () => {
  expect(requestHex(getElements({ ...PLACE, set: 's' }))).toBe(
    '24000000 0d0a0000 01000000 00000000 02000000 06000100 74000000 06000200 73000000',
  );
});

describe('there and back', () => {
  it('tables', () => {
    fc.assert(
      fc.property(name, comment, (table, text) => {
        const [payload] = sent({ kind: 'addTable', family: 'ip6', table, comment: text });
        expect(decodeTable(payload)).toMatchObject({ family: 'ip6', name: table, comment: text });
      }),
    );
  });

  it('chains', () => {
    fc.assert(
      fc.property(name, fc.option(baseChain, { nil: undefined }), (chain, base) => {
        const [payload] = sent({ kind: 'addChain', ...PLACE, chain, ...(base && { base }) });
        expect(decodeChain(payload)).toMatchObject({ name: chain, base });
      }),
    );
  });

  it('rules', () => {
    fc.assert(
      fc.property(fc.array(expressions, { maxLength: 8 }), (list) => {
        const [payload] = sent({ kind: 'addRule', ...PLACE, chain: 'c', expressions: list });
        expect(decodeRule(payload)).toMatchObject({ expressions: list });
      }),
    );
  });

  it('sets', () => {
    fc.assert(
      fc.property(setSpec, (set) => {
        const decoded = decodeSet(sent({ kind: 'addSet', ...PLACE, set })[0]);
        expect(decoded).toEqual({ ...decoded, ...propertiesOf(set), name: set.name });
      }),
    );
  });

  it('elements', () => {
    fc.assert(
      fc.property(fc.array(setElement, { minLength: 1, maxLength: 20 }), (elements) => {
        const list = elementList(elements);
        const messages = sent({ kind: 'addElements', ...PLACE, set: 's', elements: list });
        expect(messages.flatMap((payload) => decodeElements(payload).elements)).toEqual(elements);
      }),
    );
  });
});
