/** Anything that the library can write. */
import * as fc from 'fast-check';
import type { BaseChain } from '../../../../src/netlink/nftables/objects.ts';
import type { SetElement } from '../../../../src/netlink/nftables/elements.ts';
import {
  type Expression,
  registerAt,
  type NftVerdict,
} from '../../../../src/netlink/nftables/expressions.ts';
import type { Selector, SetFields, SetFlag, SetSpec } from '../../../../src/netlink/nftables/setSpec.ts';

const u32 = fc.nat(0xffffffff);
const u64 = fc.bigInt({ min: 0n, max: (1n << 64n) - 1n });
export const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,30}$/);
export const comment = fc.string({ minLength: 0, maxLength: 60, unit: 'grapheme-ascii' });
const register = fc.nat(15).map(registerAt);
const bytes = fc.uint8Array({ minLength: 1, maxLength: 16 });

export const verdict: fc.Arbitrary<NftVerdict> = fc.oneof(
  fc.record({ verdict: fc.constantFrom('accept', 'drop', 'return', 'continue', 'break') }),
  fc.record({ verdict: fc.constantFrom('jump', 'goto'), chain: name }),
);

const natFlags = fc.subarray(['random', 'persistent', 'fully-random'] as const);

export const expressions: fc.Arbitrary<Expression> = fc.oneof(
  fc.record({
    kind: fc.constant('payload'),
    base: fc.constantFrom('link', 'network', 'transport'),
    offset: u32,
    bytes: u32,
    into: register,
  }),
  fc.record({
    kind: fc.constant('meta'),
    key: fc.constantFrom('mark', 'l4proto', 'iifname'),
    into: register,
  }),
  fc.record({ kind: fc.constant('set meta'), key: fc.constantFrom('mark', 'protocol'), from: register }),
  fc.record({
    kind: fc.constant('compare'),
    from: register,
    comparison: fc.constantFrom('==', '!=', '<', '<=', '>', '>='),
    value: bytes,
  }),
  bytes.chain((mask) =>
    fc.record({
      kind: fc.constant('bitwise' as const),
      from: register,
      into: register,
      mask: fc.constant(mask),
      xor: fc.uint8Array({ minLength: mask.length, maxLength: mask.length }),
    }),
  ),
  fc.record(
    {
      kind: fc.constant('lookup'),
      set: name,
      from: register,
      into: fc.oneof(fc.constant(0), register),
      isInverted: fc.constant(true),
    },
    { requiredKeys: ['kind', 'set', 'from'] },
  ),
  fc.record({ kind: fc.constant('immediate'), into: register, value: bytes }),
  verdict.map((value) => ({ kind: 'verdict' as const, ...value })),
  fc.record({
    kind: fc.constant('fib'),
    of: fc.subarray(['saddr', 'daddr', 'mark', 'iif', 'oif', 'present'] as const),
    result: fc.constantFrom('oif', 'oifname', 'type'),
    into: register,
  }),
  fc.record(
    {
      kind: fc.constant('nat'),
      direction: fc.constantFrom('snat', 'dnat'),
      family: fc.constantFrom('ip', 'ip6'),
      flags: natFlags,
      address: register,
      port: register,
    },
    { requiredKeys: ['kind', 'direction', 'family', 'flags'] },
  ),
  fc.record({ kind: fc.constant('masquerade'), flags: natFlags }),
  fc.record({
    kind: fc.constant('numgen'),
    generator: fc.constantFrom('random', 'inc'),
    modulus: u32,
    into: register,
  }),
  fc.record({
    kind: fc.constant('reject'),
    with: fc.constantFrom('icmp', 'tcp reset', 'icmpx'),
    code: fc.nat(255),
  }),
  fc.record(
    {
      kind: fc.constant('ct'),
      key: fc.constantFrom('status', 'proto-dst', 'ip6 daddr'),
      into: register,
      direction: fc.constantFrom('original', 'reply'),
    },
    { requiredKeys: ['kind', 'key', 'into'] },
  ),
  fc.record(
    {
      kind: fc.constant('dynset'),
      operation: fc.constantFrom('add', 'update', 'delete'),
      set: name,
      key: register,
      data: register,
      timeoutMs: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    },
    { requiredKeys: ['kind', 'operation', 'set', 'key'] },
  ),
  fc.record({
    kind: fc.constant('byteorder'),
    operation: fc.constantFrom('ntoh', 'hton'),
    from: register,
    into: register,
    bytes: u32,
    size: u32,
  }),
  fc.record({ kind: fc.constant('counter'), packets: u64, bytes: u64 }),
);

export const baseChain: fc.Arbitrary<BaseChain> = fc.record({
  type: fc.constantFrom('filter', 'nat', 'route'),
  hook: fc.constantFrom('prerouting', 'input', 'forward', 'output', 'postrouting'),
  priority: fc.integer({ min: -0x80000000, max: 0x7fffffff }),
  policy: fc.constantFrom('drop', 'accept'),
});

const fields: fc.Arbitrary<SetFields> = fc.oneof(
  fc
    .array(fc.constantFrom('ipv4_addr', 'ipv6_addr', 'inet_proto', 'inet_service'), {
      minLength: 1,
      maxLength: 4,
    })
    .map((type) => ({ type }) as const),
  fc
    .array(
      fc.oneof(
        fc.constantFrom<Selector>('ip daddr', 'ip6 daddr', 'meta l4proto', 'th dport'),
        fc.integer({ min: 1, max: 1000 }).map((modulus): Selector => `numgen random mod ${modulus}`),
      ),
      { minLength: 1, maxLength: 4 },
    )
    .map((selectors) => ({ typeof: selectors })),
);

export const setSpec: fc.Arbitrary<SetSpec> = fc.record(
  {
    name,
    key: fields,
    data: fc.oneof(fc.constant('verdict' as const), fields),
    flags: fc.subarray<SetFlag>(['interval', 'timeout', 'dynamic']),
    size: u32,
    counter: fc.constant(true),
    comment,
  },
  { requiredKeys: ['name', 'key'] },
);

export const setElement: fc.Arbitrary<SetElement> = fc
  .record(
    {
      key: bytes,
      keyEnd: bytes,
      isIntervalEnd: fc.constant(true),
      timeoutMs: fc.nat(Number.MAX_SAFE_INTEGER),
      comment,
    },
    { requiredKeys: ['key'] },
  )
  .chain((element) =>
    fc
      .oneof(fc.record({ data: bytes }), fc.record({ verdict }), fc.constant({}))
      .map((value) => ({ ...element, ...value })),
  );
