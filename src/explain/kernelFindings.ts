/** What to do where the kernel does something else with a packet than what is planned. */
import type { Family } from '../model/ip.ts';
import { countOf, errorFinding, listed } from './finding.ts';
import type { Finding, KernelExplanation, KernelStep } from './types.ts';

/** How many differences a line names. */
const MOST_NAMED = 3;

export function kernelFindings(family: Family, kernel: KernelExplanation | undefined): readonly Finding[] {
  if (kernel?.asPlanned !== false) return [];
  const foreign = foreignStep(kernel);
  if (foreign) return [foreignFinding(family, foreign)];
  return [
    errorFinding('kernel-differs', 'the rules in the kernel are not those that are planned', {
      evidence: listed(kernel.differences, MOST_NAMED),
      consequence: 'Packets go where the kernel sends them, not where the plan says.',
      cure: 'A running Junction repairs its rules, at once or within its sync period: ask again. If none runs, start it. What is missing: junction diff',
    }),
  ];
}

/** The rule of another program that ends the way of a packet. */
function foreignStep({ outcomes }: KernelExplanation): KernelStep | undefined {
  for (const { verdict, steps } of outcomes) {
    const last = steps.at(-1);
    if (last?.isForeign === true && verdict !== 'passed') return last;
  }
  return undefined;
}

const PROGRAMS: Readonly<Record<Family, string>> = { IPv4: 'iptables', IPv6: 'ip6tables' };
const POLICY = 'policy drop';

function foreignFinding(family: Family, { table, chain, rule, packets }: KernelStep): Finding {
  const counted = packets === undefined ? '' : `; ${countOf(packets, 'packet')} so far`;
  return errorFinding(
    'foreign-rule',
    rule === POLICY
      ? `the policy of ${table} ${chain} drops the packet`
      : `a rule of another program decides about the packet: ${table} ${chain}: ${rule}`,
    {
      evidence: `${table} ${chain}: ${rule}${counted}`,
      consequence: 'Packets like this one do not get where the plan sends them.',
      cure: deletion(family, table, chain, rule),
    },
  );
}

/** Tables of nftables are named with their family: `inet firewalld`. */
function deletion(family: Family, table: string, chain: string, rule: string): string {
  const isNft = table.includes(' ');
  const program = PROGRAMS[family];
  if (rule === POLICY)
    return isNft
      ? `nft chain ${table} ${chain} '{ policy accept; }', or a rule that accepts such packets`
      : `${program} -t ${table} -P ${chain} ACCEPT, or a rule that accepts such packets`;
  return isNft
    ? `Delete it where it comes from, or here: nft -a list chain ${table} ${chain} shows its handle, then nft delete rule ${table} ${chain} handle NUMBER`
    : `Delete it where it comes from, or here: ${program} -t ${table} -D ${chain} ${rule.replace(/^-A \S+ /, '')}`;
}
