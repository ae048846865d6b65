/** One service of every kind, for both families, and its rules as text. */
import type { CompileOptions, LayoutName } from '../../../../src/modes/iptables/rules/fragment.ts';
import { LAYOUTS } from '../../../../src/modes/iptables/rules/layouts/index.ts';
import { wholeRestore } from '../../../../src/modes/iptables/rules/whole.ts';
import type { NodeView } from '../../../../src/plan/types.ts';
import { Cluster } from '../../../plan/cluster.ts';
import { VIEW, VIEW_6 } from '../../../plan/given.ts';
import { compileOptions } from '../compiled.ts';

const WORLD_4 = `
  # two protocols, a local and a remote endpoint
  kube/dns   10.96.0.10 dns:53/udp dns-tcp:53
  kube/dns-1 of dns dns:53/udp dns-tcp:53 | 10.244.0.2 node-a | 10.244.1.3 node-b
  # everything at once: load balancer for some, local policy, affinity, health check
  shop/web   LoadBalancer 10.96.7.7 http:80@30080 lb=198.51.100.20 ranges=203.0.113.0/24,192.0.2.0/24 etp=Local hc=32100 affinity=10800
  shop/web-1 of web http:8080 | 10.244.0.8 node-a | 10.244.1.9 node-b
  # open to everybody, three endpoints
  shop/api   NodePort 10.96.6.6 80@30081 ext=198.51.100.40
  shop/api-1 of api 8080 | 10.244.0.10 node-a | 10.244.1.10 node-b | 10.244.1.1 node-b
  # a load balancer without ranges, and none of its endpoints here
  shop/edge  LoadBalancer 10.96.8.8 443@30443 lb=198.51.100.50 ext=198.51.100.51 etp=Local hc=32101
  shop/edge-1 of edge 8443 | 10.244.1.20 node-b
  # nobody at home
  shop/idle  LoadBalancer 10.96.9.9 8080@30090 lb=198.51.100.31 ext=198.51.100.30 ranges=203.0.113.0/24
  # for pods of this node only: with and without one here
  shop/cache 10.96.5.6 6379 itp=Local
  shop/cache-1 of cache 6379 | 10.244.0.30 node-a | 10.244.1.30 node-b
  shop/agent 10.96.5.5 grpc:9000 itp=Local
  shop/agent-1 of agent grpc:9000 | 10.244.1.4 node-b
  # local inside, open outside
  shop/mixed 10.96.5.7 80@30082 itp=Local
  shop/mixed-1 of mixed 80 | 10.244.0.40 node-a | 10.244.1.40 node-b
  # on its way out, by SCTP
  shop/old   10.96.8.9 9000/sctp
  shop/old-1 of old 9000/sctp | 10.244.1.50 node-b draining
`;

/** Those that have addresses of every kind. */
const WORLD_6 = WORLD_4.split('\n')
  .filter((line) => /kube\/dns|shop\/(?:web|edge|idle)/.test(line))
  .join('\n')
  .replaceAll('10.96.', 'fd00:96::')
  .replaceAll(/fd00:96::(\d+)\.(\d+)/g, 'fd00:96::$1:$2')
  .replaceAll(/10\.244\.(\d+)\.(\d+)/g, 'fd00:244:$1::$2')
  .replaceAll(/198\.51\.100\.(\d+)/g, '2001:db8:100::$1')
  .replaceAll('203.0.113.0/24', '2001:db8:113::/48')
  .replaceAll('192.0.2.0/24', '2001:db8::/64');

export interface GoldenOptions {
  readonly layout?: LayoutName;
  readonly family?: 'IPv4' | 'IPv6';
  readonly view?: Partial<NodeView>;
  readonly options?: Partial<CompileOptions>;
  readonly world?: string;
}

export function restoreText(given: GoldenOptions = {}): string {
  const family = given.family ?? 'IPv4';
  const view = { ...(family === 'IPv4' ? VIEW : VIEW_6), ...given.view };
  const cluster = new Cluster(view, family);
  cluster.tell(given.world ?? (family === 'IPv4' ? WORLD_4 : WORLD_6)).replan();
  const options = compileOptions(cluster.planner, given.options);
  return wholeRestore(LAYOUTS[given.layout ?? 'current'], cluster.planner, options);
}

/** By `table CHAIN`, the rules in the order in which the kernel has them. */
export type RulesByChain = ReadonlyMap<string, readonly string[]>;

export function rulesByChain(restore: string): RulesByChain {
  const chains = new Map<string, string[]>();
  let table = '';
  const rulesOf = (chain: string): string[] => {
    const key = `${table} ${chain}`;
    const rules = chains.get(key) ?? [];
    chains.set(key, rules);
    return rules;
  };
  for (const line of restore.split('\n')) {
    if (line.startsWith('*')) table = line.slice(1);
    const chain = /^:(\S+)/.exec(line)?.[1];
    if (chain !== undefined) rulesOf(chain);
    const rule = /^(-A|-I) (\S+) ?(.*)$/.exec(line);
    if (rule?.[1] === '-A') rulesOf(rule[2] ?? '').push(rule[3] ?? '');
    if (rule?.[1] === '-I') rulesOf(rule[2] ?? '').unshift(rule[3] ?? '');
  }
  return chains;
}

/** For people: each chain by its name, with its rules below. */
export function printByChain(chains: RulesByChain): string {
  return [...chains]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, rules]) => `${name}\n${rules.map((rule) => `  ${rule}\n`).join('')}`)
    .join('\n');
}
