/** Sends packets through the table: what each statement of a rule makes of a packet, and what it finds in the sets. */
import { type Cidr, cidrContains, familyOf, type Ip } from '../../../model/ip.ts';
import type { Host, Packet } from '../../../plan/decide.ts';
import {
  type RuleExit,
  type WalkVerdict,
  type WalkContext,
  type WalkOptions,
  walkPacket,
  type WalkResult,
  type Way,
} from '../../walk.ts';
import { printElement, printKey, printNftRule, WORDS } from './print.ts';
import {
  type Element,
  type ElementKey,
  type Key,
  type KeyPart,
  type ChainSpec,
  type RuleSpec,
  type Ruleset,
  setsByName,
  type Statement,
  type TableSet,
} from './rule.ts';
import type { AffinityEntry } from './transaction.ts';

/** What a packet walks through: a table and its elements, made to be asked which element a key finds. */
export interface WalkTable {
  readonly chains: ReadonlyMap<string, ChainSpec>;
  readonly sets: ReadonlyMap<string, TableSet>;
  /** With an address where a set has ranges. `undefined`: there is no such element. */
  find(set: string, key: ElementKey): Element | undefined;
}

export interface NftWalkOptions extends WalkOptions {
  /** The entries of an affinity map; by default none. */
  readonly affinity?: (map: string) => readonly AffinityEntry[];
}

/** An affinity entry that the packet makes the table learn. */
export interface LearnedEntry extends AffinityEntry {
  readonly map: string;
  readonly seconds: number;
}

/** As in the kernel. */
const DEEPEST_JUMP = 16;

export function walkNftables(
  table: WalkTable,
  packet: Packet,
  host: Host,
  options: NftWalkOptions = {},
): WalkResult<LearnedEntry> {
  const { affinity = () => [] } = options;
  return walkPacket<RuleSpec, LearnedEntry>(
    {
      deepestJump: DEEPEST_JUMP,
      baseChains: ({ type, point }) =>
        type === 'filter'
          ? []
          : [...table.chains.values()]
              .filter(({ hook }) => hook?.point === point)
              .sort((a, b) => (a.hook?.priority ?? 0) - (b.hook?.priority ?? 0))
              .map(({ name }) => ({ table: '', chain: name, policy: 'accept' })),
      rulesOf: (_, chain) => table.chains.get(chain)?.rules,
      leave: (rule, way, context) => leaveRule(rule, way, { ...context, table, affinity }),
      print: (rule, { source }) => printNftRule(rule, WORDS[familyOf(source)]),
    },
    packet,
    host,
    options,
  );
}

export function walkTable({ sets, chains }: Ruleset, elements: Iterable<Element>): WalkTable {
  const known = setsByName({ sets });
  const exact = new Map<string, Element>();
  const ranges = new Map<string, Element[]>();
  for (const element of elements) {
    const { range, ...rest } = element.key;
    const id = `${element.set} ${printKey(range === undefined ? element.key : rest)}`;
    if (range === undefined) exact.set(id, element);
    else ranges.set(id, [...(ranges.get(id) ?? []), element]);
  }
  return {
    sets: known,
    chains: new Map(chains.map((chain) => [chain.name, chain])),
    find: (set, key) => {
      const shape = known.get(set);
      if (!shape?.ranges) return exact.get(`${set} ${printKey(key)}`);
      const [rest, asked] = splitLast(shape, key);
      return ranges.get(`${set} ${printKey(rest)}`)?.find((element) => covers(element.key.range, asked));
    },
  };
}

function covers(range: Cidr | undefined, ip: Ip | undefined): boolean {
  return range !== undefined && ip !== undefined && cidrContains(range, ip);
}

/** The address that may lie in a range is the last one of the key. */
function splitLast({ key: fields }: TableSet, key: ElementKey): readonly [ElementKey, Ip | undefined] {
  if (fields.length === 1) return [{}, key.address];
  const { secondAddress, ...rest } = key;
  return [rest, secondAddress];
}

type NftWay = Way<LearnedEntry>;
type Exit = RuleExit<LearnedEntry>;

interface Lookups extends WalkContext {
  readonly table: WalkTable;
  readonly affinity: (map: string) => readonly AffinityEntry[];
}

/** Statement by statement; a statement that draws a number has several branches. */
function leaveRule({ statements }: RuleSpec, first: NftWay, context: Lookups): readonly Exit[] {
  const exits: Exit[] = [];
  let live: readonly { readonly way: NftWay; readonly elements: readonly Element[] }[] = [
    { way: first, elements: [] },
  ];
  for (const statement of statements) {
    const next: { way: NftWay; elements: readonly Element[] }[] = [];
    for (const { way, elements } of live)
      for (const branch of branchesOf(statement, way, context)) {
        const { isMatch, chance, lookups = 0, mark = way.mark, learned, element, verdict } = branch;
        const after: NftWay = {
          ...way,
          probability: way.probability * chance,
          lookups: way.lookups + lookups,
          mark,
          learned: learned ? [...way.learned, learned] : way.learned,
        };
        const all = element ? [...elements, element] : elements;
        if (!isMatch) exits.push({ way: after, isMatch });
        else if (verdict) exits.push({ way: after, isMatch, verdict, found: () => all.map(printFound) });
        else next.push({ way: after, elements: all });
      }
    live = next;
  }
  for (const { way, elements } of live)
    exits.push({ way, isMatch: true, found: () => elements.map(printFound) });
  return exits;
}

function printFound(element: Element): string {
  return `${element.set} { ${printElement(element)} }`;
}

/** One of the ways in which a statement may end, by how likely it is. */
interface Branch {
  /** `false`: the rule ends here. */
  readonly isMatch: boolean;
  readonly chance: number;
  readonly lookups?: number;
  readonly mark?: number;
  readonly element?: Element;
  readonly learned?: LearnedEntry;
  /** Leaves the rule by this. */
  readonly verdict?: WalkVerdict;
}

const MATCH: Branch = { isMatch: true, chance: 1 };
const NO_MATCH: Branch = { isMatch: false, chance: 1 };

function branchesOf(statement: Statement, way: NftWay, context: Lookups): readonly Branch[] {
  switch (statement.kind) {
    case 'inSet':
      return lookUp(statement.key, statement.set, way, context, (element) =>
        (element !== undefined) === statement.not ? undefined : { ...(element && { element }) },
      );
    case 'dnatByMap':
      return lookUp(
        statement.key,
        statement.map,
        way,
        context,
        (element) => element?.endpoint && { element, verdict: { kind: 'dnat', ...element.endpoint } },
      );
    case 'verdictByMap':
      return lookUp(statement.key, statement.map, way, context, (element) =>
        element?.chain === undefined
          ? undefined
          : { element, verdict: { kind: 'jump', chain: element.chain } },
      );
    case 'learn':
      return [{ ...MATCH, lookups: 1, learned: learnedBy(statement, way) }];
    case 'changeMark': {
      const { operation, mark } = statement;
      return [{ ...MATCH, mark: (operation === 'flip' ? way.mark ^ mark : way.mark | mark) >>> 0 }];
    }
    case 'jump':
    case 'goto':
      return [{ ...MATCH, verdict: { kind: statement.kind, chain: statement.chain } }];
    case 'masquerade':
    case 'reject':
    case 'drop':
    case 'return':
      return [{ ...MATCH, verdict: { kind: statement.kind } }];
    default:
      return [matches(statement, way, context) ? MATCH : NO_MATCH];
  }
}

type PlainMatch = Extract<
  Statement,
  { kind: 'addressType' | 'addressIn' | 'inInterface' | 'protocol' | 'hasPort' | 'isRewritten' | 'hasMark' }
>;

function matches(statement: PlainMatch, way: NftWay, { isLocal }: WalkContext): boolean {
  switch (statement.kind) {
    case 'addressType':
      return isLocal(way[statement.side]) !== statement.not;
    case 'addressIn':
      return cidrContains(statement.cidr, way[statement.side]) !== statement.not;
    case 'inInterface':
      return isInterface(statement.name, way.inInterface) !== statement.not;
    case 'protocol':
      return statement.protocol === way.protocol;
    case 'hasPort':
      return way.port !== 0;
    case 'isRewritten':
      return way.isRewritten;
    case 'hasMark':
      return ((way.mark & statement.mark) !== 0) !== statement.not;
  }
}

function isInterface(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}

/**
 * A number that is drawn splits the packet. The draws that find nothing are one way again: the numbers are forgotten
 * when the rule ends.
 */
function lookUp(
  key: Key,
  set: string,
  way: NftWay,
  { table, affinity, note }: Lookups,
  judge: (found: Element | undefined) => Pick<Branch, 'element' | 'verdict'> | undefined,
): readonly Branch[] {
  const shape = table.sets.get(set);
  if (!shape) {
    note(`the table has no set ${set}`);
    return [NO_MATCH];
  }
  const draws = key.find((part) => typeof part === 'object')?.drawnOf ?? 1;
  const branches: Branch[] = [];
  let missing = 0;
  for (let index = 0; index < draws; index++) {
    const asked = keyOf(key, way, index);
    const found =
      shape.dynamicSize === undefined ? table.find(set, asked) : findEntry(set, affinity(set), asked);
    const consequence = judge(found);
    if (!consequence) missing++;
    else branches.push({ isMatch: true, chance: 1 / draws, lookups: 1, ...consequence });
  }
  if (missing > 0) branches.push({ isMatch: false, chance: missing / draws, lookups: 1 });
  return branches;
}

function findEntry(set: string, entries: readonly AffinityEntry[], key: ElementKey): Element | undefined {
  const known = entries.find(
    (each) => each.client === key.address && each.destination === key.secondAddress && each.port === key.port,
  );
  return known && { set, key, endpoint: known.endpoint };
}

function keyOf(key: Key, way: NftWay, index: number): ElementKey {
  const result: { -readonly [Field in keyof ElementKey]: ElementKey[Field] } = {};
  for (const part of key) {
    const value = valueOf(part, way);
    if (typeof part === 'object') result.index = index;
    else if (part === 'protocol') result.protocol = way.protocol;
    else if (typeof value === 'number') result[result.port === undefined ? 'port' : 'secondPort'] = value;
    else if (value !== undefined) result[result.address === undefined ? 'address' : 'secondAddress'] = value;
  }
  return result;
}

function valueOf(part: KeyPart, way: NftWay): Ip | number | undefined {
  switch (part) {
    case 'source':
    case 'destination':
    case 'port':
      return way[part];
    case 'originalSource':
      return way.original.source;
    case 'originalDestination':
      return way.original.destination;
    case 'originalPort':
      return way.original.port;
    default:
      return undefined;
  }
}

function learnedBy({ map, seconds, key }: Extract<Statement, { kind: 'learn' }>, way: NftWay): LearnedEntry {
  const { address, secondAddress, port } = keyOf(key, way, 0);
  if (address === undefined || secondAddress === undefined || port === undefined)
    throw new Error(`${map} is not for clients and what they dialled`);
  const endpoint = { ip: way.destination, port: way.port };
  return { map, seconds, client: address, destination: secondAddress, port, endpoint };
}
