/** The kernel's state as a save prints it, and as far as its order means anything. */
import type { ParsedRule, Tables } from '../../../../src/modes/iptables/rules/parse.ts';
import { printRule, probabilityBits } from '../../../../src/modes/iptables/rules/print.ts';
import type { Match } from '../../../../src/modes/iptables/rules/rule.ts';

/** As a save prints it: addresses first. */
export function asSaved({ matches, target }: ParsedRule): ParsedRule {
  const isAddress = ({ kind }: Match): boolean => kind === 'source' || kind === 'destination';
  const sourceFirst = (a: Match, b: Match): number => (a.kind === b.kind ? 0 : a.kind === 'source' ? -1 : 1);
  return {
    matches: [
      ...matches.filter(isAddress).map(withMask).sort(sourceFirst),
      ...matches.filter((match) => !isAddress(match)).map(withBits),
    ],
    target,
  };
}

function withMask(match: Match): Match {
  if (match.kind !== 'source' && match.kind !== 'destination') return match;
  const { cidr } = match;
  const mask = cidr.includes(':') ? '/128' : '/32';
  return cidr.includes('/') ? match : { ...match, cidr: `${cidr}${mask}` as typeof cidr };
}

function withBits(match: Match): Match {
  if (match.kind !== 'statistic') return match;
  return { ...match, probability: (probabilityBits(match.probability) / 2 ** 31).toFixed(11) };
}

/**
 * The state as far as its order means anything: chains by name; in the kernel's own chains and among services the
 * order of rules is free, within a service and for the last rule of KUBE-SERVICES it is not.
 */
export function meaningOf(tables: Tables): readonly string[] {
  return [...tables].flatMap(([table, chains]) =>
    [...chains]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([chain, { policy, rules }]) => {
        const texts = rules.map(printRule).map(oneMark);
        const isFree = policy !== undefined || chain === 'KUBE-IPVS-OUT-FILTER';
        const ordered = isFree ? texts.sort() : SHARED.has(chain) ? byOwner(texts) : texts;
        return [`${table} ${chain}`, ...ordered.map((text) => `  ${text}`)];
      }),
  );
}

/** The kernel keeps the same for both writings. */
function oneMark(text: string): string {
  return text.replace(/--set-xmark (\w+)\/\1$/, '--or-mark $1');
}

const SHARED: ReadonlySet<string> = new Set([
  'KUBE-SERVICES',
  'KUBE-EXTERNAL-SERVICES',
  'KUBE-NODEPORTS',
  'KUBE-PROXY-FIREWALL',
  'KUBE-FIREWALL',
]);

function byOwner(texts: readonly string[]): readonly string[] {
  const isTail = (text: string): boolean => text.includes('this must be the last rule');
  const tailStart = texts.findIndex(isTail);
  const body = tailStart < 0 ? texts : texts.slice(0, tailStart);
  const ownerOf = (text: string): string => {
    const name = /--comment "?(\S+?)["\s]/.exec(text)?.[1] ?? '';
    return `${name} ${/-p (\w+)/.exec(text)?.[1] ?? ''}`;
  };
  const sorted = [...body].sort((a, b) => (ownerOf(a) < ownerOf(b) ? -1 : ownerOf(a) > ownerOf(b) ? 1 : 0));
  return [...sorted, ...(tailStart < 0 ? [] : texts.slice(tailStart))];
}
