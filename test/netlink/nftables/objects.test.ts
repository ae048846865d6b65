/** Tables, chains, rules, sets and elements: as bytes that mean a line of nft, and there and back. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Message, MessageWriter, decodeMessages } from '../../../src/netlink/codec.ts';
import { decodeChain, decodeRule, decodeSet, decodeTable } from '../../../src/netlink/nftables/objects.ts';
import {
  newChain,
  deleteElements,
  newElements,
  deleteRule,
  newRule,
  newSet,
  deleteTable,
  newTable,
} from './support/messages.ts';
import { ElementList } from '../../../src/netlink/nftables/elementList.ts';
import { decodeElements, elementList, getElements } from '../../../src/netlink/nftables/elements.ts';
import { decodeGeneration } from '../../../src/netlink/nftables/message.ts';
import type { NetlinkRequest } from '../../../src/netlink/socket.ts';
import { decodeNotification } from '../../../src/netlink/nftables/notifications.ts';
import { propertiesOf } from '../../../src/netlink/nftables/setSpec.ts';
import { requestHex, unhex } from '../../system/support/bytes.ts';
import { baseChain, comment, expressions, name, setElement, setSpec } from './support/arbitraries.ts';
import * as golden from './support/golden.ts';
import type { Ip } from '../../../src/model/ip.ts';

const PLACE = { family: 'ip', table: 't' } as const;

function sent(message: NetlinkRequest): Message {
  const { type, flags, payload } = message;
  const [decoded] = decodeMessages(
    new MessageWriter().message({ type, flags, sequence: 1 }, payload).finish(),
  );
  if (!decoded) throw new Error('no message');
  return decoded;
}

describe('what a kernel says', () => {
  it('of a table', () => {
    expect(decodeTable(golden.TABLE)).toEqual({
      family: 'ip',
      name: 't',
      handle: 1n,
      flags: 0,
      isDormant: false,
      owner: undefined,
      objects: 7,
      comment: 'mine',
    });
  });

  it('of chains', () => {
    expect(decodeChain(golden.BASE_CHAIN)).toEqual({
      family: 'ip',
      table: 't',
      name: 'a',
      handle: 1n,
      base: { type: 'nat', hook: 'prerouting', priority: -100, policy: 'accept' },
      isBase: true,
      references: 1,
      comment: undefined,
    });
    expect(decodeChain(golden.PLAIN_CHAIN)).toMatchObject({ name: 'b', isBase: false, comment: 'plain' });
  });

  it('of a rule', () => {
    expect(decodeRule(golden.RULE)).toEqual({
      family: 'ip',
      table: 't',
      chain: 'a',
      handle: 8n,
      expressions: [
        { kind: 'payload', base: 'network', offset: 16, bytes: 4, into: 1 },
        { kind: 'lookup', set: 'cidrs', from: 1 },
        { kind: 'verdict', verdict: 'goto', chain: 'b' },
      ],
      comment: 'why',
    });
  });

  it('of maps and sets is what their declaration means', () => {
    expect(decodeSet(golden.MAP)).toEqual({
      family: 'ip',
      table: 't',
      name: 'any-3',
      handle: 3n,
      count: 1,
      comment: 'pool',
      ...propertiesOf({
        name: 'any-3',
        key: { typeof: ['ip daddr', 'meta l4proto', 'th dport', 'numgen random mod 3'] },
        data: { typeof: ['ip daddr', 'th dport'] },
        counter: true,
        comment: 'pool',
      }),
    });
    expect(decodeSet(golden.CONCATENATED_INTERVALS)).toMatchObject(
      propertiesOf({
        name: 'allowed',
        key: { type: ['ipv4_addr', 'inet_service'] },
        flags: ['interval'],
      }),
    );
    expect(decodeSet(golden.DYNAMIC_MAP)).toMatchObject(
      propertiesOf({
        name: 'aff',
        key: { type: ['ipv4_addr'] },
        data: { type: ['inet_service'] },
        flags: ['dynamic', 'timeout'],
        size: 10,
        timeoutMs: 3_600_000,
      }),
    );
  });

  it('of elements', () => {
    expect(decodeElements(golden.MAP_ELEMENT)).toEqual({
      family: 'ip',
      table: 't',
      set: 'any-3',
      elements: [
        {
          key: unhex('0a600001 06000000 01bb0000 02000000'),
          data: unhex('0a000003 192b0000'),
          counter: { packets: 0n, bytes: 0n },
          comment: 'default/kubernetes',
        },
      ],
    });
    expect(decodeElements(golden.RANGE_ELEMENT).elements).toEqual([
      { key: unhex('0a000000 00500000'), keyEnd: unhex('0affffff 00500000') },
    ]);
    expect(decodeElements(golden.VERDICT_ELEMENT).elements).toEqual([
      { key: unhex('0a600002'), verdict: { verdict: 'goto', chain: 'b' }, comment: 'dns' },
    ]);
    expect(decodeElements(golden.INTERVAL_ELEMENTS).elements).toEqual([
      { key: unhex('0b000000'), isIntervalEnd: true },
      { key: unhex('0a000000') },
      { key: unhex('00000000'), isIntervalEnd: true },
    ]);
    expect(decodeElements(golden.TIMED_ELEMENT).elements).toEqual([
      { key: unhex('0a000001'), data: unhex('0050'), timeoutMs: 180_000, expiresMs: 179_996 },
    ]);
  });

  it('of a generation', () => {
    expect(decodeGeneration(golden.GENERATION)).toEqual({ id: 2, processId: 0x57b0, processName: 'nft' });
  });

  it.each([
    [0, 'new table', golden.TABLE],
    [2, 'deleted table', golden.TABLE],
    [3, 'new chain', golden.BASE_CHAIN],
    [5, 'deleted chain', golden.PLAIN_CHAIN],
    [6, 'new rule', golden.RULE],
    [8, 'deleted rule', golden.RULE],
    [9, 'new set', golden.MAP],
    [11, 'deleted set', golden.MAP],
    [12, 'new elements', golden.MAP_ELEMENT],
    [14, 'deleted elements', golden.MAP_ELEMENT],
    [15, 'new generation', golden.GENERATION],
    [18, 'other', golden.TABLE],
  ])('as news, operation %i: %s', (operation, kind, payload) => {
    expect(decodeNotification({ type: (10 << 8) | operation, payload }).kind).toBe(kind);
  });

  it('of another subsystem is no news', () => {
    expect(decodeNotification({ type: 1 << 8, payload: golden.TABLE })).toEqual({ kind: 'other' });
  });
});

describe('golden bytes', () => {
  it('nft add table ip t { comment "mine"; }', () => {
    expect(requestHex(newTable({ kind: 'addTable', ...PLACE, comment: 'mine' }))).toBe(
      [
        '30000000 000a0004 01000000 00000000 02000000', //   NEWTABLE, create
        '06000100 74000000 08000200 00000000', //            NAME "t", FLAGS 0
        '0b000600 00056d69 6e650000', //                     USERDATA { comment "mine" }
      ].join(' '),
    );
  });

  it('nft add table ip t { flags owner; }', () => {
    expect(requestHex(newTable({ kind: 'addTable', ...PLACE, isOwned: true }))).toBe(
      [
        '24000000 000a0004 01000000 00000000 02000000', //   NEWTABLE, create
        '06000100 74000000 08000200 00000002', //            NAME "t", FLAGS owner
      ].join(' '),
    );
  });

  it('nft delete table ip t', () => {
    expect(requestHex(deleteTable({ kind: 'deleteTable', ...PLACE }))).toBe(
      '1c000000 020a0000 01000000 00000000 02000000 06000100 74000000',
    );
  });

  it('nft add chain ip t a { type nat hook prerouting priority -100; policy accept; }', () => {
    const base = { type: 'nat', hook: 'prerouting', priority: -100, policy: 'accept' } as const;
    expect(requestHex(newChain({ kind: 'addChain', ...PLACE, chain: 'a', base }))).toBe(
      [
        '48000000 030a0004 01000000 00000000 02000000', //   NEWCHAIN, create
        '06000100 74000000 06000300 61000000', //            TABLE "t", NAME "a"
        '14000480 08000100 00000000 08000200 ffffff9c', //   HOOK { HOOKNUM 0, PRIORITY -100 }
        '08000500 00000001 08000700 6e617400', //            POLICY accept, TYPE "nat"
      ].join(' '),
    );
  });

  it('nft add rule ip t a drop comment "why"', () => {
    const expressions = [{ kind: 'verdict', verdict: 'drop' } as const];
    expect(requestHex(newRule({ kind: 'addRule', ...PLACE, chain: 'a', expressions, comment: 'why' }))).toBe(
      [
        '64000000 060a000c 01000000 00000000 02000000', //   NEWRULE, create, append
        '06000100 74000000 06000200 61000000', //            TABLE "t", CHAIN "a"
        '34000480 30000180', //                              EXPRESSIONS { ELEM {
        '0e000100 696d6d65 64696174 65000000', //            NAME "immediate"
        '1c000280 08000100 00000000', //                     DATA { DREG 0
        '10000280 0c000280 08000100 00000000', //            DATA { VERDICT { CODE 0 } } } } }
        '0a000700 00047768 79000000', //                     USERDATA { comment "why" }
      ].join(' '),
    );
  });

  it('nft delete rule ip t a handle 8', () => {
    expect(requestHex(deleteRule({ kind: 'deleteRule', ...PLACE, chain: 'a', handle: 8n }))).toBe(
      [
        '30000000 080a0000 01000000 00000000 02000000',
        '06000100 74000000 06000200 61000000 0c000300 00000000 00000008',
      ].join(' '),
    );
  });

  it('nft add set ip t s { type ipv4_addr . inet_service; flags interval; }', () => {
    const set = { name: 's', key: { type: ['ipv4_addr', 'inet_service'] }, flags: ['interval'] } as const;
    expect(requestHex(newSet({ kind: 'addSet', ...PLACE, set }, 1))).toBe(
      [
        '78000000 090a0004 01000000 00000000 02000000', //   NEWSET, create
        '06000100 74000000 06000200 73000000', //            TABLE "t", NAME "s"
        '08000300 00000084 08000400 000001cd', //            FLAGS interval, concatenation; KEY_TYPE 7 << 6 | 13
        '08000500 00000008 08000a00 00000001', //            KEY_LEN 8, ID 1
        '20000980 1c000280 0c000180 08000100 00000004', //   DESC { CONCAT { FIELD { LEN 4 },
        '0c000180 08000100 00000002', //                     FIELD { LEN 2 } } }
        '14000d00 00040000 00000308 00040d00 00000100', //   USERDATA { byte order none, key is a concatenation }
      ].join(' '),
    );
  });

  it('nft add element ip t m { 10.96.0.1 . tcp . 443 . 2 comment "k8s" : 10.0.0.3 . 6443 }', () => {
    const elements = new ElementList();
    elements
      .begin()
      .ip('10.96.0.1' as Ip)
      .protocol('TCP')
      .port(443)
      .index(2);
    elements
      .data()
      .ip('10.0.0.3' as Ip)
      .port(6443)
      .comment('k8s')
      .end();
    const [message] = newElements({ kind: 'addElements', ...PLACE, set: 'm', elements });
    expect(message && requestHex(message)).toBe(
      [
        '60000000 0c0a0004 01000000 00000000 02000000', //   NEWSETELEM, create
        '06000100 74000000 06000200 6d000000', //            TABLE "t", SET "m"
        '3c000380 38000180', //                              ELEMENTS { ELEM {
        '18000180 14000100 0a600001 06000000 01bb0000 02000000', // KEY { VALUE address, protocol, port, index },
        '10000280 0c000100 0a000003 192b0000', //            DATA { VALUE address, port },
        '0a000600 00046b38 73000000', //                     USERDATA { comment "k8s" } } }
      ].join(' '),
    );
  });

  it('nft delete element ip t s { 10.0.0.0/8 }, where the set has intervals', () => {
    const elements = elementList([
      { key: unhex('0a000000') },
      { key: unhex('0b000000'), isIntervalEnd: true },
    ]);
    const [message] = deleteElements({ kind: 'deleteElements', ...PLACE, set: 's', elements });
    expect(message && requestHex(message)).toBe(
      [
        '50000000 0e0a0000 01000000 00000000 02000000 06000100 74000000 06000200 73000000',
        '2c000380 10000180 0c000180 08000100 0a000000', //   ELEM { KEY { VALUE 10.0.0.0 } }
        '18000180 0c000180 08000100 0b000000 08000300 00000001', // ELEM { KEY { VALUE 11.0.0.0 }, FLAGS end }
      ].join(' '),
    );
  });

  it('nft list set ip t s', () => {
    expect(requestHex(getElements({ ...PLACE, set: 's' }))).toBe(
      '24000000 0d0a0000 01000000 00000000 02000000 06000100 74000000 06000200 73000000',
    );
  });
});

describe('there and back', () => {
  it('tables', () => {
    fc.assert(
      fc.property(name, comment, (table, text) => {
        const message = newTable({ kind: 'addTable', family: 'ip6', table, comment: text });
        expect(decodeTable(sent(message).payload)).toMatchObject({
          family: 'ip6',
          name: table,
          comment: text,
        });
      }),
    );
  });

  it('chains', () => {
    fc.assert(
      fc.property(name, comment, fc.option(baseChain, { nil: undefined }), (chain, text, base) => {
        const message = newChain({
          kind: 'addChain',
          ...PLACE,
          chain,
          comment: text,
          ...(base && { base }),
        });
        expect(decodeChain(sent(message).payload)).toMatchObject({ name: chain, comment: text, base });
      }),
    );
  });

  it('rules', () => {
    fc.assert(
      fc.property(fc.array(expressions, { maxLength: 8 }), comment, (list, text) => {
        const message = newRule({ kind: 'addRule', ...PLACE, chain: 'c', expressions: list, comment: text });
        expect(decodeRule(sent(message).payload)).toMatchObject({ expressions: list, comment: text });
      }),
    );
  });

  it('sets', () => {
    fc.assert(
      fc.property(setSpec, (set) => {
        const properties = propertiesOf(set);
        const decoded = decodeSet(sent(newSet({ kind: 'addSet', ...PLACE, set }, 7)).payload);
        expect(decoded).toEqual({ ...decoded, ...properties, name: set.name, comment: set.comment });
      }),
    );
  });

  it('elements', () => {
    fc.assert(
      fc.property(fc.array(setElement, { minLength: 1, maxLength: 20 }), (elements) => {
        const list = elementList(elements);
        const messages = newElements({ kind: 'addElements', ...PLACE, set: 's', elements: list });
        expect(messages.flatMap((message) => decodeElements(sent(message).payload).elements)).toEqual(
          elements,
        );
      }),
    );
  });
});
