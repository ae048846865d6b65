/** The table as text that `nft -f` reads, in the words in which `nft list` prints it. */
import type { Family } from '../../../model/ip.ts';
import type { Protocol } from '../../../model/objects.ts';
import { TABLE, TABLE_COMMENT } from './names.ts';
import type {
  ChainSpec,
  Element,
  ElementKey,
  FieldType,
  HookSpec,
  Key,
  KeyPart,
  RuleSpec,
  Ruleset,
  Statement,
  TableSet,
} from './rule.ts';

interface FamilyWords {
  readonly ip: 'ip' | 'ip6';
  readonly address: 'ipv4_addr' | 'ipv6_addr';
}

export const WORDS: Readonly<Record<Family, FamilyWords>> = {
  IPv4: { ip: 'ip', address: 'ipv4_addr' },
  IPv6: { ip: 'ip6', address: 'ipv6_addr' },
};

/** The whole table; elements are looked up by the name of their set. */
export function printTable(
  { sets, chains }: Ruleset,
  elements: ReadonlyMap<string, readonly Element[]>,
  family: Family,
): string {
  const words = WORDS[family];
  const blocks = [
    ...sets.map((set) => printSet(set, elements.get(set.name) ?? [], words)),
    ...chains.map((chain) => printChain(chain, words)),
  ];
  return `table ${words.ip} ${TABLE} {\n\tcomment "${TABLE_COMMENT}"\n${blocks.join('\n')}}\n`;
}

function printSet(set: TableSet, elements: readonly Element[], words: FamilyWords): string {
  const flags = [...(set.ranges ? ['interval'] : []), ...(set.dynamicSize ? ['dynamic', 'timeout'] : [])];
  const lines = [
    printType(set, words),
    ...(set.dynamicSize === undefined ? [] : [`size ${set.dynamicSize}`]),
    ...(flags.length === 0 ? [] : [`flags ${flags.join(',')}`]),
    ...(set.counts ? ['counter'] : []),
    ...(set.comment === undefined ? [] : [`comment "${set.comment}"`]),
    ...(elements.length === 0
      ? []
      : [`elements = { ${elements.map((element) => printElement(element)).join(',\n\t\t\t     ')} }`]),
  ];
  return block(`${set.data === undefined ? 'set' : 'map'} ${set.name}`, lines);
}

/** A drawn index has no type of its own: such keys are said by what they come from. */
function printType({ key, data }: TableSet, words: FamilyWords): string {
  const isDrawn = key.some((field) => typeof field === 'object');
  const value = data === 'endpoint' ? (isDrawn ? typeofEndpoint(words) : typeEndpoint(words)) : data;
  const fields = key.map((field) => (isDrawn ? typeofField(field, words) : typeField(field, words)));
  return `${isDrawn ? 'typeof' : 'type'} ${fields.join(' . ')}${value === undefined ? '' : ` : ${value}`}`;
}

function typeEndpoint({ address }: FamilyWords): string {
  return `${address} . inet_service`;
}

function typeofEndpoint({ ip }: FamilyWords): string {
  return `${ip} daddr . th dport`;
}

function typeField(field: FieldType, { address }: FamilyWords): string {
  if (field === 'address') return address;
  return field === 'protocol' ? 'inet_proto' : 'inet_service';
}

function typeofField(field: FieldType, { ip }: FamilyWords): string {
  if (typeof field === 'object') return `numgen random mod ${field.drawnOf}`;
  if (field === 'address') return `${ip} daddr`;
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

function printChain({ name, hook, rules }: ChainSpec, words: FamilyWords): string {
  return block(`chain ${name}`, [
    ...(hook ? [`type nat hook ${hook.point} priority ${priority(hook)}; policy accept;`] : []),
    ...rules.map((rule) => printNftRule(rule, words)),
  ]);
}

function priority({ point, priority: number }: HookSpec): string {
  if (point === 'prerouting' && number === -100) return 'dstnat';
  return point === 'postrouting' && number === 100 ? 'srcnat' : String(number);
}

function block(head: string, lines: readonly string[]): string {
  return `\t${head} {\n${lines.map((line) => `\t\t${line}\n`).join('')}\t}\n`;
}

export function printNftRule({ statements, comment }: RuleSpec, words: FamilyWords): string {
  const protocol = statements.find((each) => each.kind === 'protocol')?.protocol;
  // Where a port of the protocol is named later, nft takes it as said.
  const isImplied = statements.some(
    (each) =>
      each.kind === 'learn' ||
      each.kind === 'hasPort' ||
      (each.kind === 'inSet' && each.key.includes('port')),
  );
  const texts = statements
    .filter(({ kind }) => !isImplied || kind !== 'protocol')
    .flatMap((statement) => printStatement(statement, words, protocol));
  return [...texts, ...(comment === undefined ? [] : [`comment "${comment}"`])].join(' ');
}

function printStatement(
  statement: Statement,
  words: FamilyWords,
  protocol: Protocol | undefined,
): readonly string[] {
  const key = (parts: Key): string => parts.map((part) => printPart(part, words, protocol)).join(' . ');
  switch (statement.kind) {
    case 'inSet':
      return [`${key(statement.key)} ${statement.not ? '!= ' : ''}@${statement.set}`];
    case 'addressType':
      return [`fib ${side(statement.side)} type ${statement.not ? '!= ' : ''}local`];
    case 'addressIn':
      return [`${words.ip} ${side(statement.side)} ${statement.not ? '!= ' : ''}${hostless(statement.cidr)}`];
    case 'inInterface':
      return [`iifname ${statement.not ? '!= ' : ''}"${statement.name}"`];
    case 'protocol':
      return [`meta l4proto ${statement.protocol.toLowerCase()}`];
    case 'hasPort':
      return [`${printPart('port', words, protocol)} != 0`];
    case 'isRewritten':
      return ['ct status dnat'];
    case 'hasMark':
      return [`meta mark & ${mark(statement.mark)} ${statement.not ? '==' : '!='} ${mark(0)}`];
    case 'changeMark':
      return [`meta mark set meta mark ${statement.operation === 'set' ? '|' : '^'} ${mark(statement.mark)}`];
    case 'learn':
      return [
        `update @${statement.map} { ${key(statement.key)} timeout ${duration(statement.seconds)} : ${words.ip} daddr . ${printPart('port', words, protocol)} }`,
      ];
    case 'dnatByMap':
      return [`dnat ${words.ip} to ${key(statement.key)} map @${statement.map}`];
    case 'verdictByMap':
      return [`${key(statement.key)} vmap @${statement.map}`];
    case 'masquerade':
      return ['masquerade fully-random'];
    case 'reject':
    case 'drop':
    case 'return':
      return [statement.kind];
    case 'jump':
    case 'goto':
      return [`${statement.kind} ${statement.chain}`];
  }
}

function printPart(part: KeyPart, { ip }: FamilyWords, protocol: Protocol | undefined): string {
  if (typeof part === 'object') return `numgen random mod ${part.drawnOf}`;
  switch (part) {
    case 'source':
      return `${ip} saddr`;
    case 'destination':
      return `${ip} daddr`;
    case 'protocol':
      return 'meta l4proto';
    case 'port':
      return `${protocol?.toLowerCase() ?? 'th'} dport`;
    case 'originalSource':
      return `ct original ${ip} saddr`;
    case 'originalDestination':
      return `ct original ${ip} daddr`;
    case 'originalPort':
      return 'ct original proto-dst';
  }
}

/** `1h30m` */
function duration(seconds: number): string {
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ] as const;
  return parts.map(([count, unit]) => (count === 0 ? '' : `${count}${unit}`)).join('');
}

function side(which: 'source' | 'destination'): string {
  return which === 'source' ? 'saddr' : 'daddr';
}

function hostless(cidr: string): string {
  return cidr.replace(/^([^:]*)\/32$|^(.*:.*)\/128$/, '$1$2');
}

function mark(value: number): string {
  return `0x${(value >>> 0).toString(16).padStart(8, '0')}`;
}
