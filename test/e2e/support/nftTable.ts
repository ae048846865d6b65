/** Our tables as `nft` prints them, without what differs from one moment to the next. */
import type { Host } from '../../../lab/host.ts';

const TABLE_FAMILIES = ['ip', 'ip6'];

interface Block {
  /** `set hairpin`, `chain services`. */
  readonly head: string;
  readonly lines: readonly string[];
  /** In order; of a chain, none. */
  readonly elements: readonly string[];
}

/** Both tables, so that two of them can be compared. */
export async function ourTables(node: Host): Promise<string> {
  const texts = [];
  for (const family of TABLE_FAMILIES) {
    const table = (await tableNames(node)).get(family) ?? 'none';
    const { exitCode, stdout } = await node.exec(['nft', 'list', 'table', family, table]);
    texts.push(`table ${family}\n${exitCode === 0 ? normalised(stdout) : 'none'}`);
  }
  return texts.join('\n');
}

/** By family: the table in force. While it is rebuilt, there is another without hooks. */
async function tableNames(node: Host): Promise<ReadonlyMap<string, string>> {
  const listed = await node.run(['nft', 'list', 'chains']);
  const tables = listed.matchAll(/^table (ip6?) (junction-[ab]) \{\n(.*?)^\}/gms);
  const hooked = Array.from(tables).filter(([, , , chains = '']) => chains.includes(' hook '));
  return new Map(hooked.map(([, family = '', name = '']) => [family, name]));
}

/** With the names that our tables have at the moment: `ip junction` is `ip junction-a`, or `-b`. */
export async function named(node: Host, text: string): Promise<string> {
  const names = await tableNames(node);
  return text.replace(/\b(ip6?) junction(?![-\w])/g, (_, family: string) => `${family} ${names.get(family)}`);
}

/**
 * Without counts, remembered clients and expirations, in an order of its own. Sizes of pools and time-outs that nobody
 * has any more stay for some seconds, empty: they are left out, with the rules that ask them.
 */
function normalised(text: string): string {
  const blocks = parse(text);
  const emptied = blocks.filter(({ head, elements }) => EMPTIED.test(head) && elements.length === 0);
  const unused = new Set(emptied.map(nameOf));
  for (const name of blocks.map(nameOf)) if (isOfNobody(name, blocks, unused)) unused.add(name);
  return blocks
    .filter((block) => !unused.has(nameOf(block)))
    .map((block) => print(block, unused))
    .sort()
    .join('\n');
}

/** Of their rules, one applies to a packet at most: each came when it was first needed. */
const UNORDERED = /^chain (?:(?:ports-)?(?:any|outside)|remember|remembered)$/;
const EMPTIED = /^(?:map (?:ports-)?(?:any|outside)-(?:\d+|large)|map sticky-\w+)$/;

/**
 * The entries of a protocol that no service has affinity for; the chain `sticky-tcp-60`, to which no frontend leads; the
 * chain `any-large-20`, whose map is `any-20`.
 */
function isOfNobody(name: string, blocks: readonly Block[], unused: ReadonlySet<string>): boolean {
  const [, protocol] = /^affinity-(\w+)$/.exec(name) ?? [];
  if (protocol !== undefined) return unused.has(`sticky-${protocol}`);
  if (/^sticky-\w+-\d+$/.test(name))
    return !blocks.some(({ elements }) => elements.some((each) => each.endsWith(`jump ${name}`)));
  const [, prefix, size] = /^(.*)-large-(\d+)$/.exec(name) ?? [];
  return prefix !== undefined && unused.has(`${prefix}-${size}`);
}

function nameOf({ head }: Block): string {
  return head.slice(head.indexOf(' ') + 1);
}

function print({ head, lines, elements }: Block, unused: ReadonlySet<string>): string {
  const asksUnused = (line: string): boolean =>
    [...line.matchAll(/@([\w-]+)/g)].some(([, set = '']) => unused.has(set));
  const kept = lines.filter((line) => !asksUnused(line));
  const ordered = UNORDERED.test(head) ? kept.sort() : kept;
  const lasting = head.startsWith('map affinity-') ? [] : [...elements].sort();
  return [head, ...ordered, ...lasting].join('\n  ');
}

function parse(text: string): readonly Block[] {
  return text.split('\n\t}\n').flatMap((part) => {
    const [, head, body = ''] = /\n\t((?:set|map|chain) \S+) \{\n?([\s\S]*)$/.exec(`\n${part}`) ?? [];
    if (head === undefined) return [];
    const [before = '', elements = ''] = body.split('elements = {');
    return [
      {
        head,
        lines: before
          .split('\n')
          .map((line) => line.trim())
          .filter((line) => line !== ''),
        elements: elements
          .replace(/ counter packets \d+ bytes \d+/g, '')
          .replace(/\}\s*$/, '')
          .split(',')
          .map((element) => element.trim())
          .filter((element) => element !== ''),
      },
    ];
  });
}
