/** Rules as `iptables-nft-restore` writes them, beside what the encoder and the decoder make of them. Runs inside a namespace. */
import { spawnSync } from 'node:child_process';
import * as fc from 'fast-check';
import type { Family } from '../../../../../src/model/ip.ts';
import { decodeIptablesRule } from '../../../../../src/modes/iptables/netlink/decodeRule.ts';
import { DIALECTS } from '../../../../../src/modes/iptables/netlink/dialect.ts';
import { RuleEncoder } from '../../../../../src/modes/iptables/netlink/encodeRule.ts';
import { parseSave } from '../../../../../src/modes/iptables/rules/parse.ts';
import { appendLine, chainLine, printRule, ruleKey } from '../../../../../src/modes/iptables/rules/print.ts';
import { ensureNfacct } from '../../../../../src/netlink/nfacct.ts';
import { decodeRule } from '../../../../../src/netlink/nftables/objects.ts';
import { type Rule, type Table, TABLES } from '../../../../../src/modes/iptables/rules/rule.ts';
import { type Sample, SAMPLES, toIpv6 } from '../../rules/rules.ts';
import { hex, PROGRAM, rawRules, restore, runInside } from './kernelRules.ts';
import { randomRule } from './randomRules.ts';

export interface Compared {
  readonly dialect: keyof typeof DIALECTS;
  /** So many rules of each table, besides the samples. */
  readonly numRuns: number;
  readonly seed: number;
}

export interface Comparison {
  /** How many rules were compared. */
  readonly rules: number;
  readonly differences: readonly unknown[];
}

const CHAIN = 'SAMPLES';
const SET = 'some-set';
const COUNTER = 'ct_state_invalid_dropped_pkts';

/** What some samples need; those that need more are left out. The first set of a namespace has the number 0. */
function prepared(family: Family): (sample: Sample) => boolean {
  const hasCounter = ensureNfacct(COUNTER).state !== 'unavailable';
  const type = ['hash:ip,port', 'family', family === 'IPv4' ? 'inet' : 'inet6'];
  const hasSet = spawnSync('ipset', ['create', SET, ...type]).status === 0;
  return ({ needs = '', rule }) => {
    if (needs.includes('nfacct')) return hasCounter;
    if (needs.includes('ipset')) return hasSet;
    return needs === '' && rule.matches.every(({ kind }) => kind !== 'other');
  };
}

export function compareWithRestore(family: Family, { dialect, numRuns, seed }: Compared): Comparison {
  const samples = (family === 'IPv6' ? SAMPLES.map(toIpv6) : SAMPLES).filter(prepared(family));
  const encoder = new RuleEncoder({ family, dialect: DIALECTS[dialect], setIndex: () => 0 });
  const context = { family, setName: () => SET };
  const differences: unknown[] = [];
  let count = 0;
  for (const table of TABLES) {
    const rules = [
      ...samples.filter((sample) => sample.table === table).map(({ rule }) => rule),
      ...fc.sample(randomRule(family, table), { numRuns, seed }),
    ];
    const { raw, saved } = restored(family, table, rules);
    count += raw.length;
    for (const [index, rule] of rules.entries()) {
      const encoded = encoder.encode(rule);
      const [kernel, savedRule] = [raw[index], saved[index]];
      const decoded = kernel && decodeIptablesRule(decodeRule(kernel.payload).expressions, context).rule;
      const ours = [encoded && hex(encoded.bytes), decoded && ruleKey(decoded)];
      const theirs = [kernel && hex(kernel.expressions), savedRule && ruleKey(savedRule)];
      if (ours.some((each, at) => each === undefined || each !== theirs[at]))
        differences.push({ table, rule: printRule(rule), ours, theirs });
    }
  }
  return { rules: count, differences };
}

/** The rules in one chain, raw from the kernel and as a save has them. */
function restored(family: Family, table: Table, rules: readonly Rule[]) {
  const jumps = rules.flatMap(({ target }) => (target?.kind === 'jump' ? [target.chain] : []));
  const chains = [...new Set([CHAIN, ...jumps])].map(chainLine);
  const lines = rules.map((rule) => appendLine(CHAIN, rule));
  restore(family, `*${table}\n${[...chains, ...lines].join('\n')}\nCOMMIT\n`);
  const saved = parseSave(runInside([`${PROGRAM[family]}-save`, '-t', table]));
  return { raw: rawRules(family, table), saved: saved.get(table)?.get(CHAIN)?.rules ?? [] };
}
