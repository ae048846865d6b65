/** Rules as a save prints them. */
import type { ParsedRule } from '../../../../src/modes/iptables/rules/parse.ts';
import { probabilityBits } from '../../../../src/modes/iptables/rules/print.ts';
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
