/** The digest of a rule is that of the same rule as the kernel dumps it, whatever its counters say. */
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MessageWriter } from '../../../src/netlink/codec.ts';
import { RuleDigester } from '../../../src/netlink/nftables/ruleDigest.ts';
import { isJunctionError } from '../../../src/errors.ts';
import { inside, output } from '../../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../system/support/namespace.ts';

type Attribute = readonly [number: number, value: Uint8Array];
interface Written {
  readonly name: string;
  readonly attributes: readonly Attribute[];
}

function bytesOf(expressions: readonly Written[]): Uint8Array {
  const writer = new MessageWriter();
  for (const { name, attributes } of expressions)
    writer.nested(1, (element) => {
      element.string(1, name);
      element.nested(2, (data) => {
        for (const [number, value] of attributes) data.attribute(number, value);
      });
    });
  return writer.finish().slice();
}

function digestOf(expressions: readonly Written[]): string {
  const { high, low } = new RuleDigester().digest(bytesOf(expressions));
  return `${high} ${low}`;
}

const attribute = fc.tuple(fc.integer({ min: 1, max: 20 }), fc.uint8Array({ maxLength: 40 }));
const expression = fc.record({
  name: fc.constantFrom('payload', 'meta', 'match', 'target', 'lookup', 'nat', 'fib', 'x', 'nothing known'),
  attributes: fc.uniqueArray(attribute, { maxLength: 5, selector: ([number]) => number }),
});
const rule = fc.array(expression, { maxLength: 6 });

describe('the digest of a rule', () => {
  it('does not depend on the order of attributes', () => {
    fc.assert(
      fc.property(rule, (written) => {
        const turned = written.map(({ name, attributes }) => ({
          name,
          attributes: attributes.toReversed(),
        }));
        expect(digestOf(turned)).toBe(digestOf(written));
      }),
    );
  });

  it('changes with each byte, and with the order of expressions', () => {
    fc.assert(
      fc.property(rule, fc.nat(), fc.integer({ min: 0, max: 7 }), (written, place, bit) => {
        const places = written.flatMap(({ attributes }, index) =>
          attributes.flatMap(([, value], at) => [...value.keys()].map((byte) => [index, at, byte] as const)),
        );
        const [index, at, byte] = places[place % Math.max(places.length, 1)] ?? [];
        fc.pre(index !== undefined);
        const changed = structuredClone(written);
        const value = changed[index]?.attributes[at ?? 0]?.[1];
        if (value) value[byte ?? 0] = (value[byte ?? 0] ?? 0) ^ (1 << bit);
        expect(digestOf(changed)).not.toBe(digestOf(written));
      }),
    );
    const two: readonly Written[] = [
      { name: 'meta', attributes: [] },
      { name: 'payload', attributes: [] },
    ];
    expect(digestOf(two.toReversed())).not.toBe(digestOf(two));
  });

  it('sees two bits that are turned at the end of two words', () => {
    const address = (last: number): Attribute => [1, Uint8Array.of(10, 0, 0, last)];
    const pair = (last: number): readonly Written[] => [
      { name: 'match', attributes: [address(last)] },
      { name: 'target', attributes: [address(last)] },
    ];
    expect(digestOf(pair(1))).not.toBe(digestOf(pair(129)));
  });

  it('leaves out what counters say', () => {
    const counter = (packets: number): readonly Written[] => [
      { name: 'counter', attributes: [[1, Uint8Array.of(packets)]] },
    ];
    expect(digestOf(counter(1))).toBe(digestOf(counter(2)));
  });

  it('reads any bytes without an error but that of a malformed message', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          new RuleDigester().digest(bytes);
        } catch (error) {
          expect(isJunctionError(error, 'NETLINK_MALFORMED')).toBe(true);
        }
      }),
    );
  });
});

const RULES = `*filter
:KUBE-A - [0:0]
:KUBE-B - [0:0]
[3:180] -A KUBE-A -s 10.0.0.0/9 -d 10.1.2.3/32 -i eth+ -p tcp -m comment --comment "a comment" -m tcp --dport 80 -j REJECT
-A KUBE-A -m conntrack --ctstate INVALID,NEW -m mark --mark 0x4000/0x4000 -j KUBE-B
-A KUBE-A -m statistic --mode random --probability 0.33333333349 -m addrtype --dst-type LOCAL -j RETURN
-A KUBE-A -m recent --name KUBE-A --rcheck --seconds 10800 --reap --mask 255.255.255.255 --rsource -j MARK --set-xmark 0x4000/0x4000
-A KUBE-A -p udp ! -s 10.0.0.0/8 -j ACCEPT
-A KUBE-A
-A KUBE-B -m limit --limit 3/sec -j DROP
COMMIT
`;

describe('in a namespace', () => {
  let namespace: Namespace;
  beforeEach(async (context) => {
    requireNamespaces(context);
    namespace = await openNamespace();
  });
  afterEach(() => namespace.close());

  interface Digests {
    readonly dumped: readonly string[];
    readonly written: readonly string[];
    readonly handles: readonly string[];
    readonly listed: readonly string[];
  }

  /** As the thread reduces them, and as the rules are when they are written as our tables write them. */
  async function digests(chain: string): Promise<Digests> {
    const source = `
      import { withChannel, messagesOf } from './src/netlink/channel.ts';
      import { MessageWriter, ATTRIBUTE_HEADER_BYTES } from './src/netlink/codec.ts';
      import { expressionList } from './src/netlink/nftables/expressions.ts';
      import { decodeRule, getRules } from './src/netlink/nftables/objects.ts';
      import { RuleDigester } from './src/netlink/nftables/ruleDigest.ts';
      import { WORDS_PER_RULE } from './src/netlink/nftables/ruleReducer.ts';
      import { NETLINK_NETFILTER } from './src/netlink/socket.ts';
      const digester = new RuleDigester();
      await withChannel(NETLINK_NETFILTER, async (channel) => {
        const request = getRules({ family: 'ip', table: 'filter' }, '${chain}');
        const [{ words }] = await channel.digestRules([request]);
        const [reply] = await channel.dumpAll([request]);
        const rules = messagesOf(reply, 'rules').map(({ payload }) => decodeRule(payload));
        const written = rules.map(({ expressions }) => {
          const writer = new MessageWriter();
          expressionList.write(writer, 4, expressions);
          const { high, low } = digester.digest(writer.finish().slice(ATTRIBUTE_HEADER_BYTES));
          return [high >>> 0, low >>> 0].join(' ');
        });
        const dumped = [];
        const handles = [];
        for (let at = 0; at < words.length; at += WORDS_PER_RULE) {
          dumped.push(words.subarray(at, at + 2).join(' '));
          handles.push(words.subarray(at + 2, at + 4).join(' '));
        }
        const listed = rules.map(({ handle }) => [handle >> 32n, handle & 0xffffffffn].join(' '));
        console.log(JSON.stringify({ dumped, written, handles, listed }));
      });`;
    return (await inside(namespace, 'digest', source)) as Digests;
  }

  it('is that of the rule as we write it; counters and handles do not matter', async () => {
    const { code, stderr } = await namespace.runner(['iptables-nft-restore', '--counters'], { stdin: RULES });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const first = await digests('KUBE-A');
    expect(first.written).toEqual(first.dumped);
    expect(first.handles).toEqual(first.listed);
    expect(new Set(first.dumped).size).toBe(6);
    await output(namespace, 'iptables-nft', '-Z', 'KUBE-A');
    await namespace.runner(['iptables-nft-restore', '--noflush'], { stdin: RULES });
    const second = await digests('KUBE-A');
    expect(second.dumped).toEqual(first.dumped);
    expect(second.handles).not.toEqual(first.handles);
  });

  it('a chain that is not there has none', async () => {
    expect(await digests('KUBE-C')).toMatchObject({ dumped: [] });
  });
});
