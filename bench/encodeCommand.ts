/** `npm run bench -- encode`: what all rules of iptables mode cost as text, as bytes, and read back from those bytes. */
import { printColumns } from '../src/cli/table.ts';
import { decodeIptablesRule } from '../src/modes/iptables/netlink/decodeRule.ts';
import { RuleEncoder } from '../src/modes/iptables/netlink/encodeRule.ts';
import { compileAll, compileOptionsOf } from '../src/modes/iptables/rules/fragment.ts';
import { LAYOUTS } from '../src/modes/iptables/rules/layouts/index.ts';
import { printRule } from '../src/modes/iptables/rules/print.ts';
import type { Rule } from '../src/modes/iptables/rules/rule.ts';
import { expressionList } from '../src/netlink/nftables/expressions.ts';
import { viewOf } from '../src/netlink/codec.ts';
import { countsOption, numberOption, refuseUnknown } from './arguments.ts';
import { plannedCluster } from './cluster.ts';
import { OPTIONS } from './iptables.ts';

const ENDPOINTS = 3;

export function encodeCommand(args: readonly string[]): void {
  refuseUnknown(args, ['--sizes', '--repetitions']);
  const repetitions = numberOption(args, '--repetitions', 5);
  const rows = countsOption(args, '--sizes', '300,3000,10000').map((services) => {
    const rules = rulesOf(services);
    const encoder = new RuleEncoder({ family: 'IPv4' });
    let bytes = 0;
    const encode = (rule: Rule): void => {
      bytes += encoder.encode(rule)?.bytes.length ?? 0;
    };
    const decode = (rule: Rule): void => {
      const encoded = encoder.encode(rule)?.bytes ?? new Uint8Array();
      const expressions = expressionList.read(viewOf(encoded), 0, encoded.length, {});
      if (Array.isArray(expressions)) decodeIptablesRule(expressions, { family: 'IPv4' });
    };
    const [printed, encoded, decoded] = [printRule, encode, decode].map((each) =>
      median(Array.from({ length: repetitions }, () => milliseconds(rules, each))),
    );
    return [
      `${services} × ${ENDPOINTS}`,
      String(rules.length),
      ms(printed),
      ms(encoded),
      `${(bytes / repetitions / 2 ** 20).toFixed(1)} MiB`,
      ms(decoded),
    ];
  });
  process.stdout.write(
    `${printColumns(['SERVICES', 'RULES', 'TEXT', 'ENCODED', 'BYTES', 'DECODED TOO'], rows)}\n`,
  );
}

/** All rules of service ports, in their own chains and in those that they share. */
function rulesOf(services: number): readonly Rule[] {
  const plan = plannedCluster({ services, endpoints: ENDPOINTS });
  const rules: Rule[] = [];
  for (const [, fragment] of compileAll(LAYOUTS.current, plan.servicePorts, compileOptionsOf(plan, OPTIONS)))
    rules.push(
      ...fragment.chains.flatMap((chain) => chain.rules),
      ...fragment.shared.map(({ rule }) => rule),
    );
  return rules;
}

function milliseconds(rules: readonly Rule[], act: (rule: Rule) => unknown): number {
  const started = performance.now();
  for (const rule of rules) act(rule);
  return performance.now() - started;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;
}

function ms(value = 0): string {
  return `${value.toFixed(1)} ms`;
}
