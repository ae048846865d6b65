/** The table as text that `nft -f` reads, in the words in which `nft list` prints it. */
import type { Family } from '../../../model/ip.ts';
import type { Protocol } from '../../../model/objects.ts';
import { TABLE, TABLE_COMMENT } from './names.ts';
import { groupBy } from './table.ts';
import type {
  ChainSpec,
  Element,
  ElementKey,
  FieldType,
  FilledTable,
  HookSpec,
  Key,
  KeyPart,
  RuleSpec,
  Side,
  Statement,
  TableSet,
} from './table.ts';

/** nft's names of an address family, and of its addresses. */
export const NFT_FAMILY = { IPv4: 'ip', IPv6: 'ip6' } as const satisfies Record<Family, string>;
const ADDRESS = { IPv4: 'ipv4_addr', IPv6: 'ipv6_addr' } as const satisfies Record<Family, string>;

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

/** The fields of a set, as nft declares them. A drawn index has no type, so such keys are declared by what they come from. */
type Declared =
  | { readonly type: readonly ('ipv4_addr' | 'ipv6_addr' | 'inet_proto' | 'inet_service')[] }
  | { readonly typeof: readonly TypeOf[] };
type TypeOf = `${'ip' | 'ip6'} daddr` | 'meta l4proto' | 'th dport' | `numgen random mod ${number}`;

interface SetDeclaration {
  readonly key: Declared;
  readonly data?: Declared | 'verdict';
}

export function declarationOf({ key, data }: TableSet, family: Family): SetDeclaration {
  const isDrawn = key.some((field) => typeof field === 'object');
  const declared = (fields: readonly FieldType[]): Declared =>
    isDrawn
      ? { typeof: fields.map((field) => typeOf(field, family)) }
      : {
          type: fields.map((field) =>
            field === 'address' ? ADDRESS[family] : field === 'protocol' ? 'inet_proto' : 'inet_service',
          ),
        };
  return {
    key: declared(key),
    ...(data && { data: data === 'endpoint' ? declared(['address', 'port']) : data }),
  };
}

function typeOf(field: FieldType, family: Family): TypeOf {
  if (typeof field === 'object') return `numgen random mod ${field.drawnOf}`;
  if (field === 'address') return `${NFT_FAMILY[family]} daddr`;
  return field === 'protocol' ? 'meta l4proto' : 'th dport';
}

export function printElement({ key, endpoint, chain, comment }: Element): string {
  const note = comment === undefined ? '' : ` comment "${comment}"`;
  const value = endpoint
    ? ` : ${endpoint.ip} . ${endpoint.port}`
    : chain === undefined
      ? ''
      : ` : jump ${chain}`;
  return `${printKey(key)}${note}${value}`;
}

/** `10.96.0.1 . tcp . 443 . 2`: what tells one element of a set from another. A start asks for hundreds of thousands. */
export function printKey(key: ElementKey): string {
  const { address, protocol, secondAddress, port, secondPort, index, range } = key;
  let text = '';
  if (address !== undefined) text = address;
  if (protocol !== undefined) text = joined(text, LOWER[protocol]);
  if (port !== undefined && secondPort !== undefined) text = joined(text, port);
  if (secondAddress !== undefined) text = joined(text, secondAddress);
  const lastPort = secondPort ?? port;
  if (lastPort !== undefined) text = joined(text, lastPort);
  if (index !== undefined) text = joined(text, index);
  if (range !== undefined) text = joined(text, hostless(range));
  return text;
}

const LOWER: Readonly<Record<Protocol, string>> = { TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' };

function joined(before: string, part: string | number): string {
  return before === '' ? `${part}` : `${before} . ${part}`;
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

export function printNftRule({ statements }: RuleSpec, family: Family): string {
  const protocol = statements.find((each) => each.kind === 'protocol')?.protocol;
  // Where a port of the protocol is named later, nft takes it as said.
  const isImplied = statements.some(
    (each) =>
      each.kind === 'learn' ||
      each.kind === 'hasPort' ||
      (each.kind === 'inSet' && each.key.includes('port')),
  );
  return statements
    .filter(({ kind }) => !isImplied || kind !== 'protocol')
    .map((statement) => printStatement(statement, NFT_FAMILY[family], protocol))
    .join(' ');
}

function printStatement(statement: Statement, ip: 'ip' | 'ip6', protocol: Protocol | undefined): string {
  const port = `${protocol?.toLowerCase() ?? 'th'} dport`;
  const part = (each: KeyPart): string => {
    if (typeof each === 'object') return `numgen random mod ${each.drawnOf}`;
    return each === 'port' ? port : PARTS[each].replace('IP', ip);
  };
  const key = (parts: Key): string => parts.map(part).join(' . ');
  const not = 'not' in statement && statement.not ? '!= ' : '';
  switch (statement.kind) {
    case 'inSet':
      return `${key(statement.key)} ${not}@${statement.set}`;
    case 'addressType':
      return `fib ${SIDES[statement.side]} type ${not}local`;
    case 'addressIn':
      return `${ip} ${SIDES[statement.side]} ${not}${hostless(statement.cidr)}`;
    case 'inInterface':
      return `iifname ${not}"${statement.name}"`;
    case 'protocol':
      return `meta l4proto ${LOWER[statement.protocol]}`;
    case 'hasPort':
      return `${port} != 0`;
    case 'isRewritten':
      return 'ct status dnat';
    case 'hasMark':
      return `meta mark & ${mark(statement.mark)} ${statement.not ? '==' : '!='} ${mark(0)}`;
    case 'changeMark':
      return `meta mark set meta mark ${statement.operation === 'set' ? '|' : '^'} ${mark(statement.mark)}`;
    case 'learn': {
      const value = `${ip} daddr . ${port}`;
      return `update @${statement.map} { ${key(statement.key)} timeout ${duration(statement.seconds)} : ${value} }`;
    }
    case 'dnatByMap':
      return `dnat ${ip} to ${key(statement.key)} map @${statement.map}`;
    case 'verdictByMap':
      return `${key(statement.key)} vmap @${statement.map}`;
    case 'masquerade':
      return 'masquerade fully-random';
    case 'reject':
    case 'drop':
    case 'return':
      return statement.kind;
    case 'jump':
    case 'goto':
      return `${statement.kind} ${statement.chain}`;
  }
}

const SIDES: Readonly<Record<Side, string>> = { source: 'saddr', destination: 'daddr' };

const PARTS: Readonly<Record<Exclude<KeyPart, object | 'port'>, string>> = {
  source: 'IP saddr',
  destination: 'IP daddr',
  protocol: 'meta l4proto',
  originalSource: 'ct original IP saddr',
  originalDestination: 'ct original IP daddr',
  originalPort: 'ct original proto-dst',
};

/** `1h30m` */
export function duration(seconds: number): string {
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ] as const;
  return parts.map(([count, unit]) => (count === 0 ? '' : `${count}${unit}`)).join('');
}

function hostless(cidr: string): string {
  return cidr.replace(/^([^:]*)\/32$|^(.*:.*)\/128$/, '$1$2');
}

function mark(value: number): string {
  return `0x${(value >>> 0).toString(16).padStart(8, '0')}`;
}
