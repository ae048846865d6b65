/** Rules as bytes and back. Two rules are the same bytes exactly when they are the same rule. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FAMILIES, type Family } from '../../../../src/model/ip.ts';
import { decodeIptablesRule } from '../../../../src/modes/iptables/netlink/decodeRule.ts';
import { DIALECTS } from '../../../../src/modes/iptables/netlink/dialect.ts';
import { RuleEncoder } from '../../../../src/modes/iptables/netlink/encodeRule.ts';
import type { Counters } from '../../../../src/modes/iptables/rules/parse.ts';
import { printRule, ruleKey } from '../../../../src/modes/iptables/rules/print.ts';
import { type Rule, TABLES } from '../../../../src/modes/iptables/rules/rule.ts';
import { expressionsOf } from './support/expressionsOf.ts';
import { randomRule } from './support/randomRules.ts';

const counters = fc.record({ packets: fc.maxSafeNat(), bytes: fc.maxSafeNat() });

describe.each(FAMILIES.flatMap((family) => TABLES.map((table) => ({ family, table }))))(
  '$family, $table',
  ({ family, table }) => {
    const rule = randomRule(family, table);
    const encoder = new RuleEncoder({ family });

    test('a rule comes back, with its counters', () => {
      fc.assert(
        fc.property(rule, fc.option(counters), (each, counted) => {
          const back = again(encoder, family, each, counted ?? undefined);
          expect(ruleKey(back.rule)).toBe(ruleKey(each));
          expect(back.counters).toEqual(counted ?? { packets: 0, bytes: 0 });
        }),
      );
    });

    test('a rule comes back of every dialect', () => {
      const encoders = Object.values(DIALECTS).map((dialect) => new RuleEncoder({ family, dialect }));
      fc.assert(
        fc.property(rule, (each) => {
          const [first, ...others] = encoders.map((one) => again(one, family, each).rule);
          expect(others).toEqual(others.map(() => first));
        }),
      );
    });

    test('what comes back is what is read of the printed rule', () => {
      fc.assert(
        fc.property(rule, (each) => {
          const once = again(encoder, family, each).rule;
          expect(again(encoder, family, once).rule).toEqual(once);
          expect(() => printRule(once)).not.toThrow();
        }),
      );
    });

    test('other rules are other bytes', () => {
      const bytesOf = (each: Rule): string =>
        Buffer.from(encoder.encode(each)?.bytes ?? new Uint8Array()).toString('hex');
      const rules = fc.sample(rule, { numRuns: 3000, seed: 16 });
      const byBytes = new Map(rules.map((each) => [bytesOf(each), ruleKey(each)]));
      const keys = new Set(rules.map(ruleKey));
      expect(byBytes.size).toBe(keys.size);
    });
  },
);

function again(
  encoder: RuleEncoder,
  family: Family,
  rule: Rule,
  counted?: Counters,
): ReturnType<typeof decodeIptablesRule> {
  const encoded = encoder.encode(rule, counted);
  if (!encoded) throw new Error(`not encoded: ${JSON.stringify(rule)}`);
  return decodeIptablesRule(expressionsOf(encoded.bytes), { family });
}
