/** Which rules on a packet's way are another program's. kube-proxy's chains have the same names, and count as ours. */
import { isOurFirewallRule } from './cleanup.ts';
import { CHAINS, IPVS_CHAINS, isServiceChain } from './names.ts';
import { jumpOf, type Rule } from './rule.ts';

const BUILT_IN: ReadonlySet<string> = new Set(['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING']);

const FIXED: ReadonlySet<string> = new Set([...Object.values(CHAINS), ...Object.values(IPVS_CHAINS)]);

export function isForeignRule(rule: Rule, table: string, chain: string): boolean {
  if (table !== 'nat' && table !== 'filter') return true;
  if (BUILT_IN.has(chain)) {
    const next = jumpOf(rule);
    return next === undefined || !isOwnChain(next);
  }
  // kubelet has rules in it too.
  return chain === CHAINS.firewall ? !isOurFirewallRule(rule) : !isOwnChain(chain);
}

function isOwnChain(chain: string): boolean {
  return FIXED.has(chain) || isServiceChain(chain);
}
