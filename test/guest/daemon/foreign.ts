/** What others have on the node beside us: it must survive everything that we do. */
import type { Host } from '../../../lab/host.ts';
import type { KernelWords } from './kernelWords.ts';

const SERVER = '198.51.100.77:99';

export async function addForeign(node: Host): Promise<void> {
  await node.run(['ipvsadm', '-A', '-t', SERVER, '-s', 'rr']);
  await node.run(['ipvsadm', '-a', '-t', SERVER, '-r', '10.244.1.99:99', '-m', '-w', '7']);
  await node.run(['ipvsadm', '-A', '-u', '[2001:db8:77::1]:99', '-s', 'rr']);
  await node.run(['ipset', 'restore'], {
    stdin: 'create theirs hash:ip\nadd theirs 198.51.100.78\ncreate KUBE-ROUTER hash:ip\n',
  });
  await node.run(['iptables-legacy-restore', '--noflush'], { stdin: RULES });
}

const RULES = `*filter
:their-chain - [0:0]
-A INPUT -s 198.51.100.79/32 -j DROP
-A FORWARD -j their-chain
-A their-chain -m set --match-set theirs src -j DROP
COMMIT
*nat
-A POSTROUTING -s 172.31.0.0/16 -j MASQUERADE
COMMIT
`;

const FOREIGN = /198\.51\.100\.7[789]|2001:db8:77::1|^theirs|^KUBE-ROUTER|their-chain|172\.31\.0\.0/;

export function foreignOnly(words: KernelWords): KernelWords {
  return select(words, (line) => line.startsWith('*') || FOREIGN.test(line));
}

export function withoutForeign(words: KernelWords): KernelWords {
  return select(words, (line) => !FOREIGN.test(line));
}

function select(words: KernelWords, keeps: (line: string) => boolean): KernelWords {
  return {
    servers: words.servers.filter(keeps),
    sets: words.sets.filter(keeps),
    addresses: words.addresses.filter(keeps),
    rules: withoutEmptyTables(words.rules.filter(keeps)),
    rules6: withoutEmptyTables(words.rules6.filter(keeps)),
  };
}

/** A table that was used once stays in the kernel. */
function withoutEmptyTables(lines: readonly string[]): readonly string[] {
  const isTable = (line: string): boolean => line.startsWith('*');
  return lines.filter((line, at) => !isTable(line) || !isTable(lines[at + 1] ?? '*'));
}
