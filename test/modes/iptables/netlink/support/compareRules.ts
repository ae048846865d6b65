/**
 * Tables written by `iptables-nft-restore`, read raw, beside what the encoder makes of the same rules, and what the decoder
 * makes of the kernel's beside what a save shows. Runs inside a namespace.
 */
import type { Family } from '../../../../../src/model/ip.ts';
import { DIALECTS } from '../../../../../src/modes/iptables/netlink/dialect.ts';
import { decodeIptablesRule } from '../../../../../src/modes/iptables/netlink/decodeRule.ts';
import { RuleEncoder } from '../../../../../src/modes/iptables/netlink/encodeRule.ts';
import { NFACCT } from '../../../../../src/modes/iptables/rules/names.ts';
import { type ParsedRule, parseSave } from '../../../../../src/modes/iptables/rules/parse.ts';
import { printRule, ruleKey } from '../../../../../src/modes/iptables/rules/print.ts';
import { ensureNfacct } from '../../../../../src/netlink/nfacct.ts';
import { decodeRule } from '../../../../../src/netlink/nftables/objects.ts';
import { hex, PROGRAM, rawRules, restore, runInside } from './kernelRules.ts';

export interface RestoreCase {
  readonly name: string;
  readonly family: Family;
  /** Of whole tables. */
  readonly text: string;
}

export interface Comparison {
  /** How many rules were compared. */
  readonly rules: number;
  readonly differences: readonly string[];
}

export interface CompareOptions {
  readonly dialect?: keyof typeof DIALECTS;
}

export function compareAll(cases: readonly RestoreCase[], options: CompareOptions): Comparison {
  for (const name of Object.values(NFACCT)) ensureNfacct(name);
  const all = cases.map((each) => compareOne(each, options));
  return {
    rules: all.reduce((sum, { rules }) => sum + rules, 0),
    differences: all.flatMap(({ differences }) => differences),
  };
}

function compareOne({ name, family, text }: RestoreCase, { dialect = '1.8.9' }: CompareOptions): Comparison {
  runInside(['nft', 'flush', 'ruleset']);
  restore(family, text);
  const given = parseSave(text);
  const saved = parseSave(runInside([`${PROGRAM[family]}-save`, '-c']));
  const encoder = new RuleEncoder({ family, dialect: DIALECTS[dialect] });
  const differences: string[] = [];
  let rules = 0;
  for (const [table, chains] of given) {
    const places = new Map<string, number>();
    for (const { chain, expressions, payload } of rawRules(family, table)) {
      const index = places.get(chain) ?? 0;
      places.set(chain, index + 1);
      const rule = chains.get(chain)?.rules[index];
      const savedRule = saved.get(table)?.get(chain)?.rules[index];
      rules++;
      const problem =
        rule && savedRule
          ? problemOf({ family, encoder, rule, savedRule, expressions, payload })
          : 'another number of rules';
      if (problem !== undefined)
        differences.push(`${name}, ${family}, ${table} ${chain}: ${rule && printRule(rule)}: ${problem}`);
    }
    for (const [chain, { rules: wanted }] of chains)
      if (wanted.length !== (places.get(chain) ?? 0))
        differences.push(`${name}, ${family}, ${table} ${chain}: missing`);
  }
  return { rules, differences };
}

interface Compared {
  readonly family: Family;
  readonly encoder: RuleEncoder;
  readonly rule: ParsedRule;
  readonly savedRule: ParsedRule;
  readonly expressions: Uint8Array;
  readonly payload: Uint8Array;
}

function problemOf({ family, encoder, rule, savedRule, expressions, payload }: Compared): string | undefined {
  const encoded = encoder.encode(rule, rule.counters);
  if (!encoded) return 'not encoded';
  const at = encoded.bytes.findIndex((byte, index) => byte !== expressions[index]);
  if (at >= 0 || encoded.bytes.length !== expressions.length)
    return differenceAt(at, encoded.bytes, expressions);
  const decoded = decodeIptablesRule(decodeRule(payload).expressions, { family });
  const [key, savedKey] = [ruleKey(decoded.rule), ruleKey(savedRule)];
  if (key !== savedKey) return `decoded ${key}, the save has ${savedKey}`;
  const { matches, target, counters } = savedRule;
  const [own, theirs] = [
    JSON.stringify({ ...decoded.rule, counters: decoded.counters }),
    JSON.stringify({ matches, target, counters }),
  ];
  return own === theirs ? undefined : `decoded ${own}, the save has ${theirs}`;
}

function differenceAt(at: number, encoded: Uint8Array, kernel: Uint8Array): string {
  const near = (bytes: Uint8Array): string => hex(bytes.subarray(Math.max(0, at - 16), at + 32));
  return `of ${encoded.length} and ${kernel.length} bytes, at ${at}: encoded …${near(encoded)}…, the kernel has …${near(kernel)}…`;
}
