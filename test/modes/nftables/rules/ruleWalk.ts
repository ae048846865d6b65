/** Sends packets through the table: what each statement of a rule makes of a packet, and what it finds in the sets. */
import { type Cidr, cidrContains, familyOf, type Ip } from '../../../../src/model/ip.ts';
import type { Host, Packet } from '../../../../src/plan/decide.ts';
import { runToEnd } from '../../../../src/time/timeSlice.ts';
import { walkPacket } from '../../../../src/modes/walk.ts';
import type {
  RuleExit,
  WalkContext,
  WalkOptions,
  WalkResult,
  WalkVerdict,
  Way,
} from '../../../../src/modes/walk.ts';
import { idOf, placeOf } from '../../../../src/modes/nftables/rules/diff.ts';
import { printElement, printNftRule } from '../../../../src/modes/nftables/rules/print.ts';
import { byName, groupBy } from '../../../../src/modes/nftables/rules/table.ts';
import type {
  AffinityEntry,
  ChainSpec,
  Element,
  ElementKey,
  Key,
  KeyPart,
  Ruleset,
  RuleSpec,
  SetsByName,
  Statement,
  TableSet,
} from '../../../../src/modes/nftables/rules/table.ts';

/** What a packet walks through: a table and its elements, made to be asked which element a key finds. */
export interface WalkTable {
  readonly chains: ReadonlyMap<string, ChainSpec>;
  readonly sets: SetsByName;
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
  const steps = walkPacket<RuleSpec, LearnedEntry>(
    {
      deepestJump: DEEPEST_JUMP,
      baseChains: (point) =>
        [...table.chains.values()]
          .filter(({ hook }) => hook?.point === point)
          .sort((a, b) => (a.hook?.priority ?? 0) - (b.hook?.priority ?? 0))
          .map(({ name }) => ({ type: 'nat', table: '', chain: name, policy: 'accept' })),
      rulesOf: (_, chain) => table.chains.get(chain)?.rules,
      leave: ({ statements }, way, context) => leaveRule(statements, way, { ...context, table, affinity }),
      print: (rule, { source }) => printNftRule(rule, familyOf(source)),
    },
    packet,
    host,
    options,
  );
  return runToEnd(steps);
}

export function walkTable(ruleset: Ruleset, elements: Iterable<Element>): WalkTable {
  const sets = byName(ruleset.sets);
  /** By set and key, without the range of a set that has them. */
  const known = groupBy(elements, (element) => `${element.set} ${placeOf(element)}`);
  return {
    sets,
    chains: byName(ruleset.chains),
    find: (set, key) => {
      const shape = sets.get(set);
      if (!shape?.ranges) return known.get(idOf({ set, key }))?.at(-1);
      const [rest, asked] = splitLast(shape, key);
      return known.get(idOf({ set, key: rest }))?.find((element) => covers(element.key.range, asked));
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

interface Lookups extends WalkContext {
  readonly table: WalkTable;
  readonly affinity: (map: string) => readonly AffinityEntry[];
}

/** One of the ways in which a statement may end. */
interface Branch {
  readonly way: NftWay;
  /** `false`: the rule ends here. */
  readonly isMatch: boolean;
  readonly element?: Element | undefined;
  /** Leaves the rule by this. */
  readonly verdict?: WalkVerdict | undefined;
}

/** Statement by statement; a statement that draws a number has several branches. */
function leaveRule(
  [statement, ...others]: readonly Statement[],
  before: NftWay,
  context: Lookups,
  elements: readonly Element[] = [],
): readonly RuleExit<LearnedEntry>[] {
  if (!statement) return [{ way: before, isMatch: true, found: () => elements.map(printFound) }];
  return branchesOf(statement, before, context).flatMap(({ way, isMatch, element, verdict }) => {
    if (!isMatch) return [{ way, isMatch }];
    const all = element ? [...elements, element] : elements;
    if (verdict) return [{ way, isMatch, verdict, found: () => all.map(printFound) }];
    return leaveRule(others, way, context, all);
  });
}

function printFound(element: Element): string {
  return `${element.set} { ${printElement(element)} }`;
}

function branchesOf(statement: Statement, way: NftWay, context: Lookups): readonly Branch[] {
  const when = (isMatch: boolean): readonly Branch[] => [{ way, isMatch }];
  switch (statement.kind) {
    case 'inSet':
      return lookUp(statement.key, statement.set, way, context, (element) => ({
        isMatch: (element !== undefined) !== statement.not,
      }));
    case 'dnatByMap':
    case 'verdictByMap':
      return lookUp(statement.key, statement.map, way, context, (element) => {
        const verdict = element && verdictOf(element);
        return { isMatch: verdict !== undefined, verdict };
      });
    case 'learn': {
      const learned = [...way.learned, learnedBy(statement, way)];
      return [{ way: { ...way, lookups: way.lookups + 1, learned }, isMatch: true }];
    }
    case 'changeMark': {
      const { operation, mark } = statement;
      const changed = (operation === 'flip' ? way.mark ^ mark : way.mark | mark) >>> 0;
      return [{ way: { ...way, mark: changed }, isMatch: true }];
    }
    case 'jump':
    case 'goto':
    case 'masquerade':
    case 'reject':
    case 'drop':
    case 'return':
      return [{ way, isMatch: true, verdict: statement }];
    case 'addressType':
      return when(context.isLocal(way[statement.side]) !== statement.not);
    case 'addressIn':
      return when(cidrContains(statement.cidr, way[statement.side]) !== statement.not);
    case 'inInterface':
      return when(isInterface(statement.name, way.inInterface) !== statement.not);
    case 'protocol':
      return when(statement.protocol === way.protocol);
    case 'hasPort':
      return when(way.port !== 0);
    case 'isRewritten':
      return when(way.isRewritten);
    case 'hasMark':
      return when(((way.mark & statement.mark) !== 0) !== statement.not);
  }
}

function verdictOf({ endpoint, chain }: Element): WalkVerdict | undefined {
  if (endpoint) return { kind: 'dnat', ...endpoint };
  return chain === undefined ? undefined : { kind: 'jump', chain };
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
  judge: (found: Element | undefined) => Pick<Branch, 'isMatch' | 'verdict'>,
): readonly Branch[] {
  const shape = table.sets.get(set);
  if (!shape) {
    note(`the table has no set ${set}`);
    return [{ way, isMatch: false }];
  }
  const draws = key.find((part) => typeof part === 'object')?.drawnOf ?? 1;
  const asked = (share: number): NftWay => ({
    ...way,
    lookups: way.lookups + 1,
    probability: (way.probability * share) / draws,
  });
  const branches: Branch[] = [];
  for (let index = 0; index < draws; index++) {
    const wanted = keyOf(key, way, index);
    const isEntry = shape.dynamicSize !== undefined;
    const element = isEntry ? findEntry(set, affinity(set), wanted) : table.find(set, wanted);
    const judged = judge(element);
    const found = asked(1);
    if (judged.isMatch)
      branches.push({ ...judged, way: isEntry ? { ...found, byAffinity: true } : found, element });
  }
  const missing = draws - branches.length;
  return missing === 0 ? branches : [...branches, { way: asked(missing), isMatch: false }];
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
    if (typeof part === 'object') result.index = index;
    else if (part === 'protocol') result.protocol = way.protocol;
    else {
      const value = valueOf(part, way);
      if (typeof value === 'number') result[result.port === undefined ? 'port' : 'secondPort'] = value;
      else result[result.address === undefined ? 'address' : 'secondAddress'] = value;
    }
  }
  return result;
}

function valueOf(part: Exclude<KeyPart, object | 'protocol'>, way: NftWay): Ip | number {
  switch (part) {
    case 'originalSource':
      return way.original.source;
    case 'originalDestination':
      return way.original.destination;
    case 'originalPort':
      return way.original.port;
    default:
      return way[part];
  }
}

function learnedBy({ map, seconds, key }: Extract<Statement, { kind: 'learn' }>, way: NftWay): LearnedEntry {
  const { address, secondAddress, port } = keyOf(key, way, 0);
  if (address === undefined || secondAddress === undefined || port === undefined)
    throw new Error(`${map} is not for clients and what they dialled`);
  const endpoint = { ip: way.destination, port: way.port };
  return { map, seconds, client: address, destination: secondAddress, port, endpoint };
}
