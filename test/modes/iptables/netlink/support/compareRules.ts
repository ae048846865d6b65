/**
 * Tables written by `iptables-nft-restore` and by netlink: the same as `iptables-save -c`, `iptables -S` and `nft list ruleset`
 * print them, and byte for byte as the kernel shows them. The decoder makes of the kernel's bytes what a save shows. Runs
 * inside a namespace.
 */
import type { Family } from '../../../../../src/model/ip.ts';
import { decodeIptablesRule } from '../../../../../src/modes/iptables/netlink/decodeRule.ts';
import { DIALECTS } from '../../../../../src/modes/iptables/netlink/dialect.ts';
import { RuleEncoder } from '../../../../../src/modes/iptables/netlink/encodeRule.ts';
import { NetlinkWriter } from '../../../../../src/modes/iptables/netlink/writer.ts';
import { piece, printStep, type Step } from '../../../../../src/modes/iptables/rules/edit.ts';
import { NFACCT } from '../../../../../src/modes/iptables/rules/names.ts';
import { type ParsedRule, parseSave, type Tables } from '../../../../../src/modes/iptables/rules/parse.ts';
import { printRule, ruleKey } from '../../../../../src/modes/iptables/rules/print.ts';
import type { Table } from '../../../../../src/modes/iptables/rules/rule.ts';
import { directChannel } from '../../../../../src/netlink/channel.ts';
import { ensureNfacct } from '../../../../../src/netlink/nfacct.ts';
import { decodeRule } from '../../../../../src/netlink/nftables/objects.ts';
import { NETLINK_NETFILTER, NetlinkSocket } from '../../../../../src/netlink/socket.ts';
import { kernelNow } from './bothWriters.ts';
import { hex, PROGRAM, type RawRule, rawRules, restore, runInside } from './kernelRules.ts';

export interface RestoreCase {
  readonly name: string;
  readonly family: Family;
  /** Of whole tables. */
  readonly text: string;
}

export interface CompareOptions {
  readonly dialect?: keyof typeof DIALECTS;
}

export interface Comparison {
  /** How many rules were compared. */
  readonly rules: number;
  readonly differences: readonly string[];
}

interface Compared {
  readonly family: Family;
  readonly encoder: RuleEncoder;
  readonly steps: readonly Step[];
}

export async function compareAll(
  cases: readonly RestoreCase[],
  { dialect = '1.8.9' }: CompareOptions,
): Promise<Comparison> {
  for (const name of Object.values(NFACCT)) ensureNfacct(name);
  let rules = 0;
  const differences: string[] = [];
  for (const { name, family, text } of cases) {
    const encoder = new RuleEncoder({ family, dialect: DIALECTS[dialect] });
    const given = parseSave(text);
    const compared = { family, encoder, steps: stepsOf(given) };
    const found = [...restored(compared, given), ...(await sentDifferences(compared))];
    differences.push(...found.map((each) => `${name}, ${family}: ${each}`));
    for (const chains of given.values()) for (const chain of chains.values()) rules += chain.rules.length;
  }
  return { rules, differences };
}

/** Chains of their own are written whole, and rules of the kernel's chains are added to them. */
function stepsOf(tables: Tables): readonly Step[] {
  return [...tables].map(([table, chains]) => {
    const all = [...chains].map(([name, { policy, rules }]) => ({ name, policy, rules }));
    return {
      table: table as Table,
      pieces: [
        piece(undefined, {
          writes: all.filter(({ policy }) => policy === undefined),
          adds: all.flatMap(({ name: chain, policy, rules }) =>
            policy === undefined ? [] : rules.map((rule) => ({ chain, rule, place: 'end' as const })),
          ),
        }),
      ],
    };
  });
}

/** What the kernel has after the restores, against what the encoder and the decoder make of the rules. */
function restored({ family, encoder, steps }: Compared, given: Tables): readonly string[] {
  runInside(['nft', 'flush', 'ruleset']);
  for (const step of steps) restore(family, printStep(step));
  const saved = parseSave(runInside([`${PROGRAM[family]}-save`, '-c']));
  const differences: string[] = [];
  for (const [table, chains] of given) {
    const byChain = rulesByChain(family, table);
    for (const [chain, { rules }] of chains) {
      const kernel = byChain.get(chain) ?? [];
      const savedRules = saved.get(table)?.get(chain)?.rules ?? [];
      if (kernel.length !== rules.length || savedRules.length !== rules.length)
        differences.push(`${table} ${chain}: ${kernel.length} rules, not ${rules.length}`);
      for (const [index, rule] of rules.entries()) {
        const [raw, savedRule] = [kernel[index], savedRules[index]];
        const problem = raw && savedRule && problemOf({ family, encoder, rule, savedRule, raw });
        if (problem !== undefined) differences.push(`${table} ${chain}: ${printRule(rule)}: ${problem}`);
      }
    }
  }
  return differences;
}

interface ComparedRule {
  readonly family: Family;
  readonly encoder: RuleEncoder;
  readonly rule: ParsedRule;
  readonly savedRule: ParsedRule;
  readonly raw: RawRule;
}

function problemOf({ family, encoder, rule, savedRule, raw }: ComparedRule): string | undefined {
  const encoded = encoder.encode(rule, rule.counters);
  if (!encoded) return 'not encoded';
  const at = encoded.bytes.findIndex((byte, index) => byte !== raw.expressions[index]);
  if (at >= 0 || encoded.bytes.length !== raw.expressions.length)
    return differenceAt(at, encoded.bytes, raw.expressions);
  const decoded = decodeIptablesRule(decodeRule(raw.payload).expressions, { family });
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

/** What the kernel has now, after restores, against what it has when the same is written by netlink. */
async function sentDifferences({ family, encoder, steps }: Compared): Promise<readonly string[]> {
  const before = pictureOf(family, steps);
  runInside(['nft', 'flush', 'ruleset']);
  const socket = NetlinkSocket.open(NETLINK_NETFILTER);
  try {
    const writer = new NetlinkWriter(family, directChannel(socket), encoder);
    for (const step of steps)
      if ((await writer.commit(step)) === undefined) return [`${step.table}: not written by netlink`];
  } finally {
    socket.close();
  }
  const after = pictureOf(family, steps);
  return [...before].flatMap(([what, text]) =>
    text === after.get(what) ? [] : [`${what} by netlink: ${after.get(what)}\nby iptables-restore: ${text}`],
  );
}

function pictureOf(family: Family, steps: readonly Step[]): ReadonlyMap<string, string> {
  const { save, list, ruleset } = kernelNow(family);
  const raw = steps.map(({ table }) =>
    [...rulesByChain(family, table)]
      .map(([chain, rules]) => `${chain}: ${rules.map(({ expressions }) => hex(expressions)).join('\n')}`)
      .sort()
      .join('\n'),
  );
  return new Map([
    ['iptables-save -c', save.join('\n')],
    ['iptables -S', list],
    ['nft list ruleset', ruleset.join('\n')],
    ['bytes', raw.join('\n')],
  ]);
}

function rulesByChain(family: Family, table: string): ReadonlyMap<string, readonly RawRule[]> {
  const byChain = new Map<string, RawRule[]>();
  for (const raw of rawRules(family, table)) {
    const rules = byChain.get(raw.chain);
    if (rules) rules.push(raw);
    else byChain.set(raw.chain, [raw]);
  }
  return byChain;
}
