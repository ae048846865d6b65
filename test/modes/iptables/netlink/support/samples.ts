/** The sample rules, written by `iptables-nft-restore`, beside what the encoder and the decoder make of them. */
import { spawnSync } from 'node:child_process';
import type { Family } from '../../../../../src/model/ip.ts';
import { decodeIptablesRule } from '../../../../../src/modes/iptables/netlink/decodeRule.ts';
import { RuleEncoder } from '../../../../../src/modes/iptables/netlink/encodeRule.ts';
import { parseSave } from '../../../../../src/modes/iptables/rules/parse.ts';
import { appendLine, chainLine, ruleKey } from '../../../../../src/modes/iptables/rules/print.ts';
import { ensureNfacct } from '../../../../../src/netlink/nfacct.ts';
import { decodeRule } from '../../../../../src/netlink/nftables/objects.ts';
import { TABLES } from '../../../../../src/modes/iptables/rules/rule.ts';
import { type Sample, SAMPLES, toIpv6 } from '../../rules/rules.ts';
import { hex, PROGRAM, rawRules, restore, runInside } from './kernelRules.ts';

interface SampleRow {
  readonly text: string;
  /** Bytes of the expressions, as the kernel shows them and as they are encoded. */
  readonly kernel: string;
  readonly encoded: string | undefined;
  /** Keys of the rule, as a save shows it and as it is decoded. */
  readonly saved: string | undefined;
  readonly decoded: string;
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

export function sampleRows(family: Family): readonly SampleRow[] {
  const samples = (family === 'IPv6' ? SAMPLES.map(toIpv6) : SAMPLES).filter(prepared(family));
  const encoder = new RuleEncoder({ family, setIndex: () => 0 });
  const context = { family, setName: () => SET };
  return TABLES.flatMap((table) => {
    const own = samples.filter((sample) => sample.table === table);
    const jumps = own.flatMap(({ rule }) => (rule.target?.kind === 'jump' ? [rule.target.chain] : []));
    const lines = [
      ...[...new Set([CHAIN, ...jumps])].map(chainLine),
      ...own.map(({ rule }) => appendLine(CHAIN, rule)),
    ];
    restore(family, `*${table}\n${lines.join('\n')}\nCOMMIT\n`);
    const saved = parseSave(runInside([`${PROGRAM[family]}-save`, '-t', table]));
    const savedRules = saved.get(table)?.get(CHAIN)?.rules ?? [];
    return rawRules(family, table).map(({ expressions, payload }, index): SampleRow => {
      const { rule } = own[index] ?? { rule: { matches: [], target: undefined } };
      const encoded = encoder.encode(rule);
      const savedRule = savedRules[index];
      return {
        text: own[index]?.text ?? '',
        kernel: hex(expressions),
        encoded: encoded && hex(encoded.bytes),
        saved: savedRule && ruleKey(savedRule),
        decoded: ruleKey(decodeIptablesRule(decodeRule(payload).expressions, context).rule),
      };
    });
  });
}
