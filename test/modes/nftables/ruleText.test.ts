/** The kernel's expressions as text: ours come out as we print them. */
import { describe, expect, it } from 'vitest';
import { lowerRule } from '../../../src/modes/nftables/lower.ts';
import { printExpressions } from '../../../src/modes/nftables/kernel/ruleText.ts';
import { printNftRule } from '../../../src/modes/nftables/rules/print.ts';
import {
  rulesetOf,
  type RulesetOptions,
  type TableShape,
} from '../../../src/modes/nftables/rules/ruleset.ts';
import { FAMILIES } from '../../../src/model/ip.ts';
import type { LocalTrafficDetector } from '../../../src/plan/types.ts';
import { cidr, VIEW } from '../../plan/given.ts';

const SIZES = [1, 2, 3, 17, 40];
const SHAPE: TableShape = {
  sizes: { address: { any: SIZES, outside: SIZES }, nodePort: { any: SIZES, outside: SIZES } },
  affinity: [
    { protocol: 'SCTP', seconds: 3600 },
    { protocol: 'TCP', seconds: 5 },
    { protocol: 'TCP', seconds: 10_800 },
    { protocol: 'UDP', seconds: 90_061 },
  ],
  hasServiceCidrs: true,
};

describe.each(FAMILIES)('%s', (family) => {
  const detectors: readonly LocalTrafficDetector[] = [
    { kind: 'none' },
    { kind: 'cidr', cidr: cidr(family === 'IPv4' ? '10.244.0.0/16' : 'fd00:244::/32') },
    { kind: 'cidr', cidr: cidr(family === 'IPv4' ? '10.128.0.0/9' : 'fd00:244::/33') },
    { kind: 'cidr', cidr: cidr(family === 'IPv4' ? '10.1.2.3/32' : 'fd00::1/128') },
    { kind: 'interface', name: 'cni0' },
    { kind: 'interfacePrefix', prefix: 'veth' },
  ];
  const nodePorts = [
    { loopback: true, ranges: 'all' as const },
    { loopback: false, ranges: [] },
  ];
  const views = detectors.flatMap((localDetector) =>
    nodePorts.map((ports) => ({ ...VIEW, localDetector, nodePorts: ports })),
  );

  it.each(views)('every rule is printed as ours is, %j', (view) => {
    const options: RulesetOptions = { family, view, masqueradeMark: 0x4000, counters: true };
    const rules = rulesetOf(SHAPE, options).chains.flatMap((chain) => chain.rules);
    expect(rules.map((rule) => printExpressions(lowerRule(rule, family)))).toEqual(
      rules.map((rule) => printNftRule(rule, family)),
    );
  });
});
