/** The rules of a node, and what others do to them. */
import type { Host } from '../../../lab/host.ts';

/** The canaries, and the mark of the record, which is written after a sync. */
const MARKS = /CANARY/;

/** Everything in iptables that is ours, in an order of its own. */
export async function ourRules(node: Host, command = 'iptables-save'): Promise<string> {
  const lines = (await node.run([command])).split('\n');
  return lines
    .filter((line) => line.includes('KUBE-') && !MARKS.test(line))
    .map((line) => line.replace(/\[\d+:\d+\]/, ''))
    .sort()
    .join('\n');
}

/** Those of services. The guard of 127.0.0.0/8 is written before `route_localnet`, so before anything is known. */
export async function ourServiceRules(node: Host, command = 'iptables-save'): Promise<string> {
  const lines = (await ourRules(node, command)).split('\n');
  return lines.filter((line) => !line.includes('KUBE-FIREWALL')).join('\n');
}

/**
 * As a firewall does that starts: every rule and every chain, in both families. Each table in one go: who repairs rules
 * would use a chain again between `-F` and `-X`, which then fails.
 */
export async function flushAll(node: Host, variant: '' | '-legacy' | '-nft' = ''): Promise<void> {
  for (const program of [`iptables${variant}-restore`, `ip6tables${variant}-restore`])
    for (const table of ['nat', 'filter', 'mangle'])
      await node.run([program, '-w', '60', '-T', table], { stdin: `*${table}\nCOMMIT\n` });
}
