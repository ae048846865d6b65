/**
 * What `iptables-restore` would make of a state: a stand-in for the kernel that refuses what the kernel refuses.
 *
 * Where the variants differ (1.8.9, kernel 6.18) the stricter one is followed: loops and deep nesting are refused by
 * nft alone, a policy for a user-defined chain by legacy alone. Each table is one transaction: a failure leaves it as it
 * was, and the tables that were committed before it stay.
 */
import type { TextRule } from '../../../../src/modes/iptables/rules/textRule.ts';
import { ParseError, readOperations, type RestoreOperation } from './restoreText.ts';
import type { MemoryChain, MemoryTables } from './tables.ts';

export class RestoreError extends Error {
  override readonly name = 'RestoreError';
  readonly table: string;
  readonly line: number;
  readonly reason: string;
  /** The state that the failed restore leaves behind. */
  readonly after: MemoryTables;

  constructor(table: string, line: number, reason: string, after: MemoryTables) {
    super(`iptables-restore, table ${table || '(none)'}, line ${line}: ${reason}`);
    this.table = table;
    this.line = line;
    this.reason = reason;
    this.after = after;
  }
}

export const BUILT_IN_CHAINS: ReadonlyMap<string, readonly string[]> = new Map([
  ['filter', ['INPUT', 'FORWARD', 'OUTPUT']],
  ['nat', ['PREROUTING', 'INPUT', 'OUTPUT', 'POSTROUTING']],
  ['mangle', ['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING']],
  ['raw', ['PREROUTING', 'OUTPUT']],
  ['security', ['INPUT', 'FORWARD', 'OUTPUT']],
]);

/** The new state; `tables` itself is left alone. Throws a `RestoreError`. */
export function applyRestore(
  tables: MemoryTables,
  restore: string | Iterable<RestoreOperation>,
  options: { readonly noflush: boolean } = { noflush: true },
): MemoryTables {
  const committed = new Map(tables);
  const operations = typeof restore === 'string' ? readOperations(restore) : restore;
  let open: TableState | undefined;
  let last: { readonly table: string; readonly line: number } = { table: '', line: 0 };
  try {
    for (const operation of operations) {
      last = operation;
      open ??= new TableState(operation.table, options.noflush ? committed.get(operation.table) : undefined);
      if (operation.kind === 'commit') {
        committed.set(operation.table, open.commit());
        open = undefined;
      } else {
        open.apply(operation);
      }
    }
    if (open) throw new Error('COMMIT expected');
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const { table, line } = error instanceof ParseError ? error : last;
    const reason = error instanceof ParseError ? error.reason : error.message;
    throw new RestoreError(table, line, reason, committed);
  }
  return committed;
}

/** One table within its transaction. Chains are copied when they are first changed. */
class TableState {
  readonly #table: string;
  readonly #builtIn: readonly string[];
  readonly #chains: Map<string, MemoryChain>;
  readonly #references = new Map<string, number>();
  readonly #copied = new Set<readonly TextRule[]>();

  constructor(table: string, chains: ReadonlyMap<string, MemoryChain> | undefined) {
    const builtIn = BUILT_IN_CHAINS.get(table);
    if (!builtIn) throw new Error(`table ${table} does not exist`);
    this.#table = table;
    this.#builtIn = builtIn;
    this.#chains = new Map(builtIn.map((name) => [name, { policy: 'ACCEPT', rules: [] }]));
    for (const [name, chain] of chains ?? []) {
      this.#chains.set(name, chain);
      for (const rule of chain.rules) this.#refer(rule, 1);
    }
  }

  apply(operation: RestoreOperation): void {
    switch (operation.kind) {
      case 'chain':
        this.#declare(operation.chain, operation.policy);
        break;
      case 'createChain':
        if (this.#chains.has(operation.chain)) throw new Error(`chain ${operation.chain} already exists`);
        checkChainName(operation.chain);
        this.#chains.set(operation.chain, { rules: [] });
        break;
      case 'deleteChain':
        this.#deleteChain(operation.chain);
        break;
      case 'flush':
        this.#flush(operation.chain);
        break;
      case 'append': {
        const rules = this.#rulesOf(operation.chain);
        this.#add(operation.chain, rules, rules.length, operation.rule);
        break;
      }
      case 'insert': {
        const rules = this.#rulesOf(operation.chain);
        if (operation.position < 1 || operation.position > rules.length + 1) {
          throw new Error(`no place ${operation.position} in chain ${operation.chain}`);
        }
        this.#add(operation.chain, rules, operation.position - 1, operation.rule);
        break;
      }
      case 'delete': {
        const { key } = operation.rule;
        const rules = this.#rulesOf(operation.chain);
        this.#remove(
          operation.chain,
          rules,
          rules.findIndex((rule) => rule.key === key),
        );
        break;
      }
      case 'deleteAt':
        this.#remove(operation.chain, this.#rulesOf(operation.chain), operation.position - 1);
        break;
      case 'commit':
        break;
    }
  }

  commit(): ReadonlyMap<string, MemoryChain> {
    checkTable(this.#chains, this.#builtIn);
    return this.#chains;
  }

  #isBuiltIn(chain: string): boolean {
    return this.#builtIn.includes(chain);
  }

  /** A built-in chain's line sets its policy and, with or without `--noflush`, leaves its rules to the flush. */
  #declare(chain: string, policy: string | undefined): void {
    if (this.#isBuiltIn(chain)) {
      if (policy === undefined) return;
      if (policy !== 'ACCEPT' && policy !== 'DROP') throw new Error(`no policy ${policy}`);
      this.#chains.set(chain, { policy, rules: this.#chains.get(chain)?.rules ?? [] });
      return;
    }
    if (policy !== undefined) throw new Error(`a policy for the user-defined chain ${chain}`);
    checkChainName(chain);
    if (this.#chains.has(chain)) this.#flush(chain);
    else this.#chains.set(chain, { rules: [] });
  }

  #flush(chain: string): void {
    const existing = this.#existing(chain);
    for (const rule of existing.rules) this.#refer(rule, -1);
    this.#chains.set(chain, { ...existing, rules: [] });
  }

  #deleteChain(chain: string): void {
    const existing = this.#existing(chain);
    if (this.#isBuiltIn(chain)) throw new Error(`chain ${chain} is built in`);
    if (existing.rules.length > 0) throw new Error(`chain ${chain} is not empty`);
    if ((this.#references.get(chain) ?? 0) > 0) throw new Error(`chain ${chain} is referred to`);
    this.#chains.delete(chain);
  }

  #add(chain: string, rules: TextRule[], index: number, rule: TextRule): void {
    checkRule(this.#table, chain, rule);
    const next = rule.jump;
    if (next !== undefined && (!this.#chains.has(next) || this.#isBuiltIn(next))) {
      throw new Error(`a jump to the missing chain ${next}`);
    }
    rules.splice(index, 0, rule);
    this.#refer(rule, 1);
  }

  #remove(chain: string, rules: TextRule[], index: number): void {
    const rule = rules[index];
    if (!rule) throw new Error(`no such rule in chain ${chain}`);
    rules.splice(index, 1);
    this.#refer(rule, -1);
  }

  #existing(chain: string): MemoryChain {
    const existing = this.#chains.get(chain);
    if (!existing) throw new Error(`chain ${chain} does not exist`);
    return existing;
  }

  #rulesOf(chain: string): TextRule[] {
    const existing = this.#existing(chain);
    if (this.#copied.has(existing.rules)) return existing.rules as TextRule[];
    const rules = [...existing.rules];
    this.#copied.add(rules);
    this.#chains.set(chain, { ...existing, rules });
    return rules;
  }

  #refer(rule: TextRule, change: 1 | -1): void {
    const chain = rule.jump;
    if (chain !== undefined) this.#references.set(chain, (this.#references.get(chain) ?? 0) + change);
  }
}

/* What the kernel and its tools refuse: of a chain's name, of a single rule, and of a table as a whole. */

const CHAIN_NAME_LENGTH = 28;
const TAKEN_NAMES: ReadonlySet<string> = new Set(['ACCEPT', 'DROP', 'RETURN', 'QUEUE']);
/** nf_tables keeps a stack of 16 chains, and the built-in chain is the first of them. */
const NESTED_CHAINS = 15;

function checkChainName(chain: string): void {
  if (chain.length > CHAIN_NAME_LENGTH) throw new Error(`the chain name ${chain} is too long`);
  if (chain.startsWith('-') || chain.startsWith('!') || TAKEN_NAMES.has(chain)) {
    throw new Error(`${chain} cannot be a chain's name`);
  }
}

function checkRule(table: string, chain: string, { options, target }: TextRule): void {
  const protocols = options.filter(({ name }) => name === '-p');
  const [protocol] = protocols[0]?.values ?? [];
  const modules = new Set(options.flatMap(({ module, name, values }) => (name === '-m' ? values : [module])));
  if (protocols.length > 1) throw new Error('more than one protocol');
  for (const module of ['tcp', 'udp', 'sctp'])
    if (modules.has(module) && protocol !== module) throw new Error(`-m ${module} without -p ${module}`);
  if (protocol === undefined && options.some(({ name }) => name === '--dport'))
    throw new Error('a port without a protocol');
  if ((chain === 'OUTPUT' || chain === 'POSTROUTING') && options.some(({ name }) => name === '-i'))
    throw new Error(`-i in ${chain}`);
  const [, kind = '', , value = ''] = target;
  if ((kind === 'DNAT' || kind === 'MASQUERADE') && table !== 'nat')
    throw new Error(`${kind} in table ${table}`);
  if (kind === 'REJECT' && table !== 'filter') throw new Error(`reject in table ${table}`);
  if (kind === 'DNAT' && protocol === undefined && /\d:\d+$|\]:\d+$/.test(value))
    throw new Error('dnat to a port without a protocol');
}

/** Only what a packet can reach is checked, as in the kernel: a loop that nothing leads to may stand. */
function checkTable(chains: ReadonlyMap<string, MemoryChain>, builtIn: readonly string[]): void {
  const heights = new Map<string, number>();
  for (const root of builtIn) {
    if (height(root, chains, heights) > NESTED_CHAINS)
      throw new Error(`too many nested chains below ${root}`);
    checkHook(root, chains);
  }
}

/** How many jumps can follow one another from here. */
function height(
  chain: string,
  chains: ReadonlyMap<string, MemoryChain>,
  heights: Map<string, number>,
): number {
  const known = heights.get(chain);
  if (known === Infinity) throw new Error(`a loop through chain ${chain}`);
  if (known !== undefined) return known;
  heights.set(chain, Infinity);
  let highest = 0;
  for (const rule of chains.get(chain)?.rules ?? []) {
    const next = rule.jump;
    if (next !== undefined) highest = Math.max(highest, 1 + height(next, chains, heights));
  }
  heights.set(chain, highest);
  return highest;
}

/** Addresses of arriving and local packets are rewritten before routing, those of leaving ones after it. */
function checkHook(root: string, chains: ReadonlyMap<string, MemoryChain>): void {
  const reached = new Set([root]);
  for (const chain of reached) {
    for (const rule of chains.get(chain)?.rules ?? []) {
      const kind = rule.target[1];
      if (kind === 'DNAT' && root !== 'PREROUTING' && root !== 'OUTPUT') {
        throw new Error(`dnat in chain ${chain}, reached from ${root}`);
      }
      if (kind === 'MASQUERADE' && root !== 'POSTROUTING') {
        throw new Error(`masquerade in chain ${chain}, reached from ${root}`);
      }
      const next = rule.jump;
      if (next !== undefined) reached.add(next);
    }
  }
}
