/** A table in memory, and what the kernel has against a change of it. */
import type {
  Element,
  ElementKey,
  FieldType,
  HookSpec,
  Key,
  RuleSpec,
  Statement,
  TableOperation,
  TableSet,
} from '../../../../src/modes/nftables/rules/table.ts';
import { sameValue } from '../../../../src/modes/nftables/rules/diff.ts';
import { printKey } from '../../../../src/modes/nftables/rules/print.ts';
import { deepEqual } from '../../../../src/model/equal.ts';
import {
  type Cidr,
  cidrContains,
  type Family,
  familyOf,
  type Ip,
  prefixOf,
} from '../../../../src/model/ip.ts';

export interface FakeSet {
  readonly set: TableSet;
  readonly elements: ReadonlyMap<string, Element>;
}

export interface FakeChain {
  readonly hook: HookSpec | undefined;
  readonly rules: readonly RuleSpec[];
}

export interface FakeTable {
  /** The socket that alone may change it. */
  readonly owner?: number | undefined;
  /** It stays when its owner ends. */
  readonly isPersistent?: boolean;
  readonly sets: ReadonlyMap<string, FakeSet>;
  readonly chains: ReadonlyMap<string, FakeChain>;
}

/** What the kernel refuses with, by its own name for it. */
export class Refused extends Error {
  override name = 'Refused';
}

const NAME_LENGTH = 255;
const DEEPEST_JUMP = 16;

/** A transaction under way: a table that is thrown away when something in it is refused. */
export class Draft {
  readonly #family: Family;
  readonly #socket: number;
  #sets: Map<string, FakeSet>;
  #chains: Map<string, FakeChain>;
  #exists: boolean;
  #owner: number | undefined;
  #isPersistent: boolean;
  /** Copied already, so that a change of few elements costs little. */
  readonly #own = new Map<string, Map<string, Element>>();

  constructor(table: FakeTable | undefined, family: Family, socket: number) {
    this.#family = family;
    this.#socket = socket;
    this.#exists = table !== undefined;
    this.#owner = table?.owner;
    this.#isPersistent = table?.isPersistent ?? false;
    this.#sets = new Map(table?.sets);
    this.#chains = new Map(table?.chains);
  }

  get table(): FakeTable | undefined {
    const owner = this.#owner;
    return this.#exists
      ? { sets: this.#sets, chains: this.#chains, owner, isPersistent: this.#isPersistent }
      : undefined;
  }

  perform(operation: TableOperation): void {
    if (this.#owner !== undefined && this.#owner !== this.#socket) throw new Refused('EPERM');
    if (operation.kind === 'addTable') return this.#addTable(operation);
    if (!this.#exists) throw new Refused('ENOENT');
    switch (operation.kind) {
      case 'deleteTable':
        this.#exists = false;
        this.#owner = undefined;
        this.#sets = new Map();
        this.#chains = new Map();
        return;
      case 'addSet':
        return this.#addSet(operation.set);
      case 'deleteSet':
        return this.#deleteSet(operation.set);
      case 'addChain':
        return this.#addChain(operation.chain, operation.hook);
      case 'flushChain':
        this.#chains.set(operation.chain, { ...this.#chain(operation.chain), rules: [] });
        return;
      case 'deleteChain':
        return this.#deleteChain(operation.chain);
      case 'addRule':
        return this.#addRule(operation.chain, operation.rule);
      case 'addElements':
        for (const element of operation.elements) this.#addElement(operation.set, element);
        return;
      case 'deleteElements':
        for (const element of operation.elements) this.#deleteElement(operation.set, element);
        return;
    }
  }

  /** At the end: whether every chain may do what it does where packets come by. */
  validate(): void {
    for (const [name, { hook }] of this.#chains) if (hook) this.#validateChain(name, hook, 0);
  }

  /** The flags of one that is there cannot be changed. */
  #addTable(operation: Extract<TableOperation, { kind: 'addTable' }>): void {
    const isOwned = operation.isOwned === true;
    const isPersistent = operation.isPersistent === true;
    if (this.#exists && (isOwned !== (this.#owner !== undefined) || isPersistent !== this.#isPersistent))
      throw new Refused('ENOTSUP');
    this.#exists = true;
    this.#owner = isOwned ? this.#socket : undefined;
    this.#isPersistent = isPersistent;
  }

  #addSet(set: TableSet): void {
    if (set.name.length > NAME_LENGTH) throw new Refused('ERANGE');
    const known = this.#sets.get(set.name);
    if (known && !isSameSet(known.set, set)) throw new Refused('EEXIST');
    if (!known) this.#sets.set(set.name, { set, elements: new Map() });
  }

  #deleteSet(name: string): void {
    this.#set(name);
    const isUsed = [...this.#chains.values()].some(({ rules }) =>
      rules.some(({ statements }) => statements.some((each) => setOf(each) === name)),
    );
    if (isUsed) throw new Refused('EBUSY');
    this.#sets.delete(name);
    this.#own.delete(name);
  }

  #addChain(name: string, hook: HookSpec | undefined): void {
    if (name.length > NAME_LENGTH) throw new Refused('ERANGE');
    const known = this.#chains.get(name);
    if (known && hook && !deepEqual(known.hook, hook)) throw new Refused('ENOTSUP');
    if (!known) this.#chains.set(name, { hook, rules: [] });
  }

  #deleteChain(name: string): void {
    this.#chain(name);
    for (const [other, { rules }] of this.#chains)
      if (other !== name && rules.some(({ statements }) => statements.some((each) => chainOf(each) === name)))
        throw new Refused('EBUSY');
    for (const { elements } of this.#sets.values())
      for (const { chain } of elements.values()) if (chain === name) throw new Refused('EBUSY');
    this.#chains.delete(name);
  }

  #addRule(name: string, rule: RuleSpec): void {
    const chain = this.#chain(name);
    for (const statement of rule.statements) this.#check(statement);
    this.#chains.set(name, { ...chain, rules: [...chain.rules, rule] });
  }

  #check(statement: Statement): void {
    const target = chainOf(statement);
    if (target !== undefined && this.#chain(target).hook) throw new Refused('ENOTSUP');
    const name = setOf(statement);
    if (name === undefined) return;
    const { set } = this.#set(name);
    if ('key' in statement && !fits(statement.key, set.key)) throw new Refused('EINVAL');
    if (statement.kind === 'dnatByMap' && set.data !== 'endpoint') throw new Refused('EINVAL');
    if (statement.kind === 'verdictByMap' && set.data !== 'verdict') throw new Refused('EINVAL');
    if (statement.kind === 'learn' && set.dynamicSize === undefined) throw new Refused('ENOTSUP');
  }

  #validateChain(name: string, hook: HookSpec, depth: number): void {
    if (depth > DEEPEST_JUMP) throw new Refused('EMLINK');
    for (const { statements } of this.#chain(name).rules)
      for (const statement of statements) {
        if (!isAllowedAt(statement, hook)) throw new Refused('ENOTSUP');
        for (const target of this.#targetsOf(statement)) this.#validateChain(target, hook, depth + 1);
      }
  }

  #targetsOf(statement: Statement): readonly string[] {
    const target = chainOf(statement);
    if (target !== undefined) return [target];
    if (statement.kind !== 'verdictByMap') return [];
    const elements = this.#sets.get(statement.map)?.elements.values() ?? [];
    return [...new Set([...elements].flatMap(({ chain }) => chain ?? []))];
  }

  #addElement({ name, key }: TableSet, element: Element): void {
    const { set } = this.#set(name);
    if (!deepEqual(set.key, key)) throw new Refused('EINVAL');
    this.#checkKey(set, element.key);
    this.#checkValue(set, element);
    const elements = this.#elements(name);
    const text = printKey(element.key);
    const known = elements.get(text);
    if (known && !sameValue(known, element)) throw new Refused('EEXIST');
    if (known) return;
    const { lifetime } = element;
    if (lifetime && lifetime.leftMs > lifetime.timeoutMs) throw new Refused('ERANGE');
    if (set.ranges && [...elements.values()].some((other) => overlap(other.key, element.key)))
      throw new Refused('EEXIST');
    elements.set(text, element);
  }

  #deleteElement({ name }: TableSet, element: Element): void {
    const { set } = this.#set(name);
    this.#checkKey(set, element.key);
    if (!this.#elements(name).delete(printKey(element.key))) throw new Refused('ENOENT');
  }

  /** Every field, and no other; of this family. */
  #checkKey({ key: fields, ranges }: TableSet, key: ElementKey): void {
    const { range, address, secondAddress } = key;
    const addresses = fields.filter((field) => field === 'address').length;
    const given = [address, secondAddress, range].filter((each) => each !== undefined);
    const isWhole =
      given.length === addresses &&
      (range !== undefined) === (ranges ?? false) &&
      (address !== undefined || addresses === (ranges ? 1 : 0)) &&
      (key.protocol !== undefined) === fields.includes('protocol') &&
      (key.port !== undefined) === fields.includes('port') &&
      (key.index !== undefined) === fields.some((field) => typeof field === 'object');
    if (!isWhole || given.some((each) => familyOf(each) !== this.#family)) throw new Refused('EINVAL');
  }

  #checkValue({ data }: TableSet, { endpoint, chain }: Element): void {
    if ((endpoint !== undefined) !== (data === 'endpoint')) throw new Refused('EINVAL');
    if ((chain !== undefined) !== (data === 'verdict')) throw new Refused('EINVAL');
    if (endpoint && familyOf(endpoint.ip) !== this.#family) throw new Refused('EINVAL');
    if (chain !== undefined && this.#chain(chain).hook) throw new Refused('ENOTSUP');
  }

  #elements(name: string): Map<string, Element> {
    let own = this.#own.get(name);
    if (!own) {
      const known = this.#set(name);
      this.#own.set(name, (own = new Map(known.elements)));
      this.#sets.set(name, { ...known, elements: own });
    }
    return own;
  }

  #set(name: string): FakeSet {
    const known = this.#sets.get(name);
    if (!known) throw new Refused('ENOENT');
    return known;
  }

  #chain(name: string): FakeChain {
    const known = this.#chains.get(name);
    if (!known) throw new Refused('ENOENT');
    return known;
  }
}

/** A comment is for people. */
export function isSameSet(a: TableSet, b: TableSet): boolean {
  const plain = ({ key, data, ranges, dynamicSize, counts }: TableSet) => ({
    key,
    data,
    ranges,
    dynamicSize,
    counts,
  });
  return deepEqual(plain(a), plain(b));
}

/** What a statement looks up, or changes. */
export function setOf(statement: Statement): string | undefined {
  if (statement.kind === 'inSet') return statement.set;
  return 'map' in statement ? statement.map : undefined;
}

export function chainOf(statement: Statement): string | undefined {
  return statement.kind === 'jump' ? statement.chain : undefined;
}

const FIELD_OF: Readonly<Record<Exclude<Key[number], object>, FieldType>> = {
  source: 'address',
  destination: 'address',
  originalSource: 'address',
  originalDestination: 'address',
  protocol: 'protocol',
  port: 'port',
  originalPort: 'port',
};

function fits(key: Key, fields: readonly FieldType[]): boolean {
  if (key.some((part) => typeof part === 'object' && part.drawnOf < 1)) return false;
  return deepEqual(
    key.map((part) => (typeof part === 'object' ? part : FIELD_OF[part])),
    fields,
  );
}

function isAllowedAt({ kind }: Statement, { point }: HookSpec): boolean {
  switch (kind) {
    case 'dnatByMap':
      return point === 'prerouting' || point === 'output';
    case 'masquerade':
      return point === 'postrouting';
    case 'reject':
      return point !== 'postrouting';
    default:
      return true;
  }
}

function overlap(a: ElementKey, b: ElementKey): boolean {
  if (a.range === undefined || b.range === undefined) return false;
  const { range: _, ...first } = a;
  const { range: __, ...second } = b;
  if (printKey(first) !== printKey(second)) return false;
  const [wider, narrower] = prefixOf(a.range) < prefixOf(b.range) ? [a.range, b.range] : [b.range, a.range];
  return cidrContains(wider, firstOf(narrower));
}

function firstOf(cidr: Cidr): Ip {
  return cidr.slice(0, cidr.indexOf('/')) as Ip;
}
