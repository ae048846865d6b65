/**
 * Rules of other programs in the way of ours: a FORWARD policy that drops, rules before our jumps that end a packet's way,
 * rules in both variants of iptables, and firewalls that run here. What they do to single services, a walk through the
 * kernel's rules says (`services.ts`).
 */
import { isJunctionError } from '../errors.ts';
import type { Family } from '../model/ip.ts';
import { isOurTable } from '../modes/nftables/rules/names.ts';
import { programsOf, type Variant } from '../modes/iptables/variant.ts';
import type { GroupFindings } from './group.ts';
import type { DoctorMachine, NftBaseChain } from './machine.ts';

const VARIANTS: readonly Variant[] = ['nft', 'legacy'];
const BASE_CHAINS: Readonly<Record<string, readonly string[]>> = {
  raw: ['PREROUTING', 'OUTPUT'],
  mangle: ['PREROUTING', 'FORWARD', 'INPUT', 'OUTPUT', 'POSTROUTING'],
  nat: ['PREROUTING', 'OUTPUT', 'POSTROUTING'],
  filter: ['INPUT', 'FORWARD', 'OUTPUT'],
};
const LEGACY_TABLES: Readonly<Record<Family, string>> = {
  IPv4: 'net/ip_tables_names',
  IPv6: 'net/ip6_tables_names',
};
/** Chains that iptables-nft keeps in nf_tables have these names. */
const NFT_FAMILIES: Readonly<Record<Family, string>> = { IPv4: 'ip', IPv6: 'ip6' };

/** A built-in chain of iptables as `iptables -S` prints it. */
interface BaseChainText {
  readonly family: Family;
  readonly variant: Variant;
  readonly table: string;
  readonly chain: string;
  readonly policy: string;
  readonly rules: readonly string[];
}

export async function checkFirewall(
  group: GroupFindings,
  machine: DoctorMachine,
  families: readonly Family[],
): Promise<void> {
  const nftChains = await machine.nftBaseChains();
  const chains: BaseChainText[] = [];
  for (const family of families)
    for (const variant of VARIANTS)
      chains.push(...(await readChains(group, machine, family, variant, nftChains)));
  checkPolicies(group, chains, nftChains);
  for (const chain of chains) checkBeforeOurs(group, chain);
  for (const family of families)
    checkVariants(
      group,
      family,
      chains.filter((chain) => chain.family === family),
    );
  checkPrograms(group, machine, chains, nftChains);
}

/** Only of tables that are there: the question for one of legacy would make it. */
async function readChains(
  group: GroupFindings,
  machine: DoctorMachine,
  family: Family,
  variant: Variant,
  nftChains: readonly NftBaseChain[],
): Promise<readonly BaseChainText[]> {
  const tables =
    variant === 'legacy'
      ? (machine.procFile(LEGACY_TABLES[family]) ?? '').split('\n').filter((name) => name in BASE_CHAINS)
      : Object.keys(BASE_CHAINS).filter((table) =>
          nftChains.some((chain) => chain.family === NFT_FAMILIES[family] && chain.table === table),
        );
  const found: BaseChainText[] = [];
  const program = programsOf(family, variant).iptables;
  try {
    for (const table of tables)
      for (const chain of BASE_CHAINS[table] ?? []) {
        const { code, stdout } = await machine.run([program, '-w', '5', '-t', table, '-S', chain]);
        if (code === 0) found.push({ family, variant, table, chain, ...linesOf(stdout) });
      }
  } catch (error) {
    if (!isJunctionError(error)) throw error;
    if (tables.length > 0) group.notEvaluated(`rules of iptables, ${variant}, ${family}`, error.message);
  }
  return found;
}

function linesOf(text: string): Pick<BaseChainText, 'policy' | 'rules'> {
  const lines = text.split('\n');
  return {
    policy: /^-P \S+ (\S+)/m.exec(text)?.[1] ?? 'ACCEPT',
    rules: lines.filter((line) => line.startsWith('-A ')),
  };
}

/** Packets that are masqueraded are accepted by our own rules; those of pods are not. */
function checkPolicies(
  group: GroupFindings,
  chains: readonly BaseChainText[],
  nftChains: readonly NftBaseChain[],
): void {
  const dropping = [
    ...chains
      .filter(
        ({ chain, policy, variant }) => chain === 'FORWARD' && policy === 'DROP' && variant === 'legacy',
      )
      .map(({ family, table }) => ({
        place: `${programsOf(family, 'legacy').iptables} table ${table}, chain FORWARD`,
        cure: `${programsOf(family, 'legacy').iptables} -P FORWARD ACCEPT`,
      })),
    ...nftChains
      .filter(({ hook, policy, table }) => hook === 'forward' && policy === 'drop' && !isOurTable(table))
      .map(({ family, table, name }) => ({
        place: `table ${family} ${table}, chain ${name}`,
        cure: `nft chain ${family} ${table} ${name} '{ policy accept; }'`,
      })),
  ];
  if (dropping.length === 0) group.fine('no base chain of forwarded packets has the policy drop');
  for (const { place, cure } of dropping)
    group.found({
      code: 'forward-policy-drop',
      severity: 'warning',
      text: 'forwarded packets are dropped unless a rule accepts them',
      evidence: `${place}: policy drop`,
      consequence:
        'packets to pods that are not masqueraded (those of pods, and of clients with externalTrafficPolicy: Local) pass only where the network plugin or the firewall accepts the pod network',
      cure: `${cure}, or a rule that accepts the pod network in both directions`,
    });
}

const ENDINGS = /-j (DROP|REJECT|ACCEPT|DNAT|REDIRECT|QUEUE|NFQUEUE|TPROXY)\b/;
/** What every packet of a connection's beginning matches. */
const NO_CONDITION = /^-A \S+ (?:-m comment --comment (?:"(?:[^"\\]|\\.)*"|\S+) )?-j /;

function checkBeforeOurs(
  group: GroupFindings,
  { family, variant, table, chain, rules }: BaseChainText,
): void {
  const ours = rules.findIndex((rule) => rule.includes('-j KUBE-') || rule.includes('-g KUBE-'));
  // A base chain without a jump of ours: of another table, of another mode, or of the variant that is not used.
  const before = ours < 0 ? rules : rules.slice(0, ours);
  for (const rule of before) {
    const ending = ENDINGS.exec(rule)?.[1];
    if (ending === undefined || !NO_CONDITION.test(rule)) continue;
    if (ending === 'ACCEPT' && (ours < 0 || table !== 'nat')) continue;
    const program = programsOf(family, variant).iptables;
    group.found({
      code: 'foreign-rule-before-ours',
      severity: 'error',
      text: `a rule of another program ends the way of every packet in ${table} ${chain}${ours < 0 ? '' : ' before our rules'}`,
      evidence: `${program} -t ${table}: ${rule}`,
      consequence:
        table === 'nat'
          ? 'packets to services never reach the rules that translate them'
          : 'packets to services are dropped, translated or not',
      cure: `${program} -t ${table} ${rule.replace(/^-A/, '-D')}`,
    });
  }
}

function checkVariants(group: GroupFindings, family: Family, chains: readonly BaseChainText[]): void {
  const busy = VARIANTS.map((variant) => ({
    variant,
    places: chains
      .filter((chain) => chain.variant === variant && chain.rules.length > 0)
      .map(({ table, chain, rules }) => `${table} ${chain} ${rules.length}`),
  }));
  if (busy.some(({ places }) => places.length === 0)) {
    const only = busy.find(({ places }) => places.length > 0);
    if (only) group.fine(`${family}: rules are in the ${only.variant} variant of iptables alone`);
    return;
  }
  group.found({
    code: 'iptables-both-variants',
    severity: 'warning',
    text: `both variants of iptables have rules (${family})`,
    evidence: busy.map(({ variant, places }) => `${variant}: ${places.join(', ')} rules`).join('; '),
    consequence:
      'each packet passes both, neither program shows the rules of the other, and a drop in one cannot be undone in the other',
    cure: `${programsOf(family, 'legacy').save} shows those of legacy. Delete them there once nothing writes them, or say --iptables-variant where both are meant`,
  });
}

/** By their process, their chains or their tables. */
const FIREWALLS = [
  {
    name: 'firewalld',
    process: 'firewalld',
    sign: /\bfirewalld\b|-j (?:FORWARD|INPUT)_direct\b/,
    page: 'docs/firewalld.md',
  },
  { name: 'ufw', process: undefined, sign: /-j ufw6?-/, page: undefined },
  { name: 'Docker', process: 'dockerd', sign: /-j DOCKER\b|-j DOCKER-USER\b/, page: undefined },
] as const;

function checkPrograms(
  group: GroupFindings,
  machine: DoctorMachine,
  chains: readonly BaseChainText[],
  nftChains: readonly NftBaseChain[],
): void {
  for (const { name, process, sign, page } of FIREWALLS) {
    const running = process === undefined ? [] : machine.processesNamed(process);
    const rule = chains.flatMap(({ rules }) => rules).find((each) => sign.test(each));
    const table = nftChains.find((chain) => sign.test(chain.table));
    const evidence = [
      ...running,
      ...(rule ? [rule] : []),
      ...(table ? [`table ${table.family} ${table.table}`] : []),
    ];
    if (evidence.length === 0) continue;
    group.found({
      code: 'other-firewall',
      severity: 'info',
      text: `${name} filters packets on this node too`,
      evidence: evidence.join('; '),
      consequence:
        'it may drop packets to pods, and a reload may delete our rules, which are then written again',
      cure:
        page === undefined
          ? `nothing, while services work; otherwise accept the pod network in ${name}`
          : `nothing, while services work; otherwise ${page}#living-together`,
    });
  }
}
