/** The modes that a soak runs: how the daemon is started, what others do to its rules, and how they are compared. */
import type { Host } from '../../lab/host.ts';
import type { Mechanism } from '../../src/modes/deviations.ts';
import { named, ourTables } from '../../test/e2e/support/nftTable.ts';
import { flushAll, ourRules } from '../../test/e2e/support/rules.ts';
import { iptablesTamperings } from './iptablesTampering.ts';
import { NFT_TAMPERINGS } from './nftTampering.ts';
import type { Draw } from './randomServices.ts';

export interface TamperCommand {
  readonly argv: readonly [string, ...string[]];
  readonly stdin?: string;
}

export interface Tampering {
  readonly name: string;
  /** Whether services that do not change are without rules until it is repaired. */
  readonly isHole: boolean;
  command(draw: Draw, node: Host): Promise<TamperCommand>;
}

export interface SoakMode {
  readonly name: string;
  readonly flags: readonly string[];
  readonly mechanism: Mechanism;
  /** While rules are missing, packets wait for their return; without it they go wherever they would without rules. */
  readonly hasBackstop: boolean;
  readonly tamperings: readonly Tampering[];
  /** Whether the rules are there, so far as one can see at a glance. */
  isWhole(node: Host): Promise<boolean>;
  /** All that is ours, in an order of its own. */
  rules(node: Host): Promise<string>;
  /** Deletes all of it. */
  wipe(node: Host): Promise<void>;
}

const TABLES = [
  /^table ip junction-[ab] \{/,
  /^table ip6 junction-[ab] \{/,
  /^table ip junction-backstop \{/,
  /^table ip6 junction-backstop \{/,
];

const NFTABLES: SoakMode = {
  name: 'nftables',
  flags: ['--proxy-mode=nftables', '--nftables-protection=backstop'],
  mechanism: 'nftables',
  hasBackstop: true,
  tamperings: NFT_TAMPERINGS,
  isWhole: async (node) => {
    // Chains are hooked in when everything else is written.
    const tables = (await node.run(['nft', 'list', 'chains'])).split(/^(?=table )/m);
    return TABLES.every((table) => tables.some((text) => table.test(text) && text.includes(' hook ')));
  },
  rules: ourTables,
  wipe: async (node) => {
    for (const family of ['ip', 'ip6'])
      await node.run(['nft', await named(node, `delete table ${family} junction`)]);
  },
};

/** A service that does not change, by its cluster IP. */
const STABLE = { iptables: '10.96.0.1/32', ip6tables: 'fd00:96::1/128' } as const;
const JUMPS = [
  ['PREROUTING', 'KUBE-SERVICES'],
  ['OUTPUT', 'KUBE-SERVICES'],
  ['POSTROUTING', 'KUBE-POSTROUTING'],
] as const;

function iptablesMode(variant: 'nft' | 'legacy'): SoakMode {
  const programs = ['iptables', 'ip6tables'] as const;
  return {
    name: `iptables-${variant}`,
    flags: ['--proxy-mode=iptables', `--iptables-variant=${variant}`],
    mechanism: 'current',
    hasBackstop: false,
    tamperings: iptablesTamperings(variant),
    isWhole: async (node) => {
      for (const program of programs) {
        const saved = await node.run([`${program}-${variant}-save`, '-t', 'nat']);
        const has = (rule: string): boolean => new RegExp(`^-A ${rule}`, 'm').test(saved);
        if (!JUMPS.every(([chain, target]) => has(`${chain} .*-j ${target}$`))) return false;
        if (!has('KUBE-POSTROUTING .*-j MASQUERADE') || !has('KUBE-NODEPORTS .*--dport ')) return false;
        if (!saved.includes(` -d ${STABLE[program]} `)) return false;
      }
      return true;
    },
    rules: async (node) => {
      const saved: string[] = [];
      for (const program of programs) saved.push(program, await ourRules(node, `${program}-${variant}-save`));
      return saved.join('\n');
    },
    wipe: (node) => flushAll(node, `-${variant}`),
  };
}

export const SOAK_MODES: readonly SoakMode[] = [NFTABLES, iptablesMode('nft'), iptablesMode('legacy')];
