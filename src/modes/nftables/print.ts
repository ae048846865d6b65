/** The table as text that `nft -f` reads, in the words in which `nft list` prints it; `junction plan` prints all of it. */
import { TABLE, TABLE_COMMENT } from './rules/names.ts';
import { type Declared, declarationOf, NFT_FAMILY, printElement } from './rules/print.ts';
import { groupBy } from './rules/table.ts';
import type { ChainSpec, Element, FilledTable, HookSpec, RuleSpec, TableSet } from './rules/table.ts';
import { printExpressions } from './kernel/ruleText.ts';
import { lowerRule } from './lower.ts';
import { wholeTable } from './rules/counts.ts';
import type { Settings } from '../../config/settings.ts';
import { type Cidr, type Family, type Ip, isLoopback } from '../../model/ip.ts';
import { answersNodePorts } from '../../plan/decide.ts';
import type { Plan } from '../../plan/types.ts';
import { nodeIpsOf } from '../../system/interfaces.ts';

/** For `nft -f`, over whatever such a table has. */
export function nftPlanText(plan: Plan, settings: Settings, serviceCidrs: readonly Cidr[]): string {
  const { family } = plan;
  const whole = wholeTable(plan, {
    masqueradeMark: (1 << settings.masqueradeBit) >>> 0,
    counters: settings.counters,
    nodePortIps: nodePortIps(plan),
    serviceCidrs,
  });
  const name = `${NFT_FAMILY[family]} ${TABLE}`;
  const table = printTable(whole, family);
  // With the table in one transaction: packets meet the one before or this one. nft adds to a table that is there, and nft
  // 1.0.6 cannot even do that where keys have a random part ("conflicting protocols specified").
  const replacing = `add table ${name}\ndelete table ${name}\n`;
  return replacing + (family === 'IPv4' ? table : table.replaceAll(LEARNING, UNWRITABLE));
}

const LEARNING = /^([ \t]*)((?:.* )?update @affinity-\w+ .*)$/gm;
/**
 * nft 1.0.6 has no registers left for two IPv6 addresses, a port and an endpoint, and ends with a failed assertion.
 * Junction has room for them.
 */
const UNWRITABLE = '$1# Junction writes this, nft cannot: $2';

export function printNftPlan(plan: Plan, settings: Settings, serviceCidrs: readonly Cidr[]): string {
  return `# ${plan.family}, for: nft -f -\n${nftPlanText(plan, settings, serviceCidrs)}`;
}

/** The node's own address counts, if its Node tells it: who plans is seldom the node, and this mode's default names it. */
function nodePortIps({ family, view }: Plan): readonly Ip[] {
  const { nodeIp } = view;
  const own = nodeIp === undefined || isLoopback(nodeIp) ? [] : [nodeIp];
  const all = new Set([...nodeIpsOf(family), ...own]);
  return [...all].filter((ip) => answersNodePorts(view.nodePorts, ip)).sort();
}

export function printTable({ sets, chains, elements }: FilledTable, family: Family): string {
  const bySet = groupBy(elements, ({ set }) => set);
  const blocks = [
    ...sets.map((set) => printSet(set, bySet.get(set.name) ?? [], family)),
    ...chains.map((chain) => printChain(chain, family)),
  ];
  return `table ${NFT_FAMILY[family]} ${TABLE} {\n\tcomment "${TABLE_COMMENT}"\n${blocks.join('\n')}}\n`;
}

/** `set cluster-ips { type ipv4_addr; comment "cluster IPs" }`: a set without its elements, or a chain without its rules. */
export function printDeclaration(declared: TableSet | ChainSpec, family: Family): string {
  const text =
    'key' in declared ? printSet(declared, [], family) : printChain({ ...declared, rules: [] }, family);
  const [head = '', ...lines] = text.trim().split('\n');
  const inner = lines.slice(0, -1).map((line) => line.trim().replace(/;$/, ''));
  return inner.length === 0 ? `${head} }` : `${head} ${inner.join('; ')} }`;
}

function printSet(set: TableSet, elements: readonly Element[], family: Family): string {
  const flags = [...(set.ranges ? ['interval'] : []), ...(set.dynamicSize ? ['dynamic', 'timeout'] : [])];
  const { key, data } = declarationOf(set, family);
  return block(`${data === undefined ? 'set' : 'map'} ${set.name}`, [
    `${'type' in key ? 'type' : 'typeof'} ${printFields(key)}${data ? ` : ${printFields(data)}` : ''}`,
    ...(set.dynamicSize === undefined ? [] : [`size ${set.dynamicSize}`]),
    ...(flags.length === 0 ? [] : [`flags ${flags.join(',')}`]),
    ...(set.counts ? ['counter'] : []),
    ...(set.comment === undefined ? [] : [`comment "${set.comment}"`]),
    ...(elements.length === 0
      ? []
      : [`elements = { ${elements.map((element) => printElement(element)).join(',\n\t\t\t     ')} }`]),
  ]);
}

function printFields(fields: Declared | 'verdict'): string {
  if (fields === 'verdict') return fields;
  return ('type' in fields ? fields.type : fields.typeof).join(' . ');
}

export function printNftRule(rule: RuleSpec, family: Family): string {
  return printExpressions(lowerRule(rule, family));
}

function printChain({ name, hook, rules }: ChainSpec, family: Family): string {
  return block(`chain ${name}`, [
    ...(hook ? [`type nat hook ${hook.point} priority ${priority(hook)}; policy accept;`] : []),
    ...rules.map((rule) => printNftRule(rule, family)),
  ]);
}

function priority({ point, priority: number }: HookSpec): string {
  if (point === 'prerouting' && number === -100) return 'dstnat';
  return point === 'postrouting' && number === 100 ? 'srcnat' : String(number);
}

function block(head: string, lines: readonly string[]): string {
  return `\t${head} {\n${lines.map((line) => `\t\t${line}\n`).join('')}\t}\n`;
}
