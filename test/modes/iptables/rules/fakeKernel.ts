/** A kernel in memory, as strict as the real one, that remembers what it was sent and fails when told to. */
import { isRefusal, type StepDraft, type TableClient } from '../../../../src/modes/iptables/rules/sender.ts';
import {
  CHAINS_PER_RESTORE,
  type ChainWrite,
  piece,
  printStep,
  type Step,
} from '../../../../src/modes/iptables/rules/edit.ts';
import { printRule, probabilityBits } from '../../../../src/modes/iptables/rules/print.ts';
import {
  type ParsedChain,
  type ParsedRule,
  parseSave,
  type Tables,
} from '../../../../src/modes/iptables/rules/parse.ts';
import { applyRestore, RestoreError } from './restore.ts';
import type { Match, Table } from '../../../../src/modes/iptables/rules/rule.ts';
import { JunctionError } from '../../../../src/errors.ts';

export const EMPTY = `
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
COMMIT
`;

export interface Restore {
  readonly table: Table;
  readonly text: string;
}

/** What goes wrong with a restore, if anything does. Nothing of it takes effect then. */
export type Fault = (restore: Restore) => Error | undefined;

export const refusal = (text = 'line 1 failed'): Error => new JunctionError('IPTABLES_RESTORE_FAILED', text);
export const lockHeld = (): Error => new JunctionError('XTABLES_LOCK_HELD', 'somebody has the lock');

export class FakeKernel implements TableClient {
  tables: Tables;
  /** Restores that took effect. */
  readonly restores: Restore[] = [];
  /** All of them. */
  readonly attempts: Restore[] = [];
  saves = 0;
  /** Chains that were read by themselves. */
  readonly lists: string[] = [];
  /** Tables to which packets do not come. */
  readonly dormant = new Set<Table>();
  chainsPerRestore = CHAINS_PER_RESTORE;
  /** Chains of services are sent as drafts, as by netlink. */
  hasDrafts = true;
  /** Drafts that took effect. */
  drafted = 0;
  fault: Fault = () => undefined;
  /** Called after every restore that took effect. */
  watch: (tables: Tables) => void = () => {};

  constructor(text: string = EMPTY) {
    this.tables = parseSave(text);
  }

  async save(table: Table, { counters }: { readonly counters: boolean }): Promise<string> {
    this.saves++;
    return printTable(table, this.tables.get(table) ?? new Map(), { counters, saved: true });
  }

  async wake(): Promise<readonly Table[]> {
    const woken = [...this.dormant];
    this.dormant.clear();
    return woken;
  }

  async list(table: Table, chain: string): Promise<string | undefined> {
    this.lists.push(`${table} ${chain}`);
    const read = this.tables.get(table)?.get(chain);
    return (
      read && printTable(table, new Map([[chain, { rules: read.rules }]]), { counters: false, saved: true })
    );
  }

  draft(table: Table): StepDraft | undefined {
    return this.hasDrafts ? new FakeDraft(this, table) : undefined;
  }

  async commit(step: Step): Promise<number> {
    const text = printStep(step);
    await this.restore(step.table, text);
    return text.length;
  }

  async restore(table: Table, text: string): Promise<void> {
    const restore = { table, text };
    this.attempts.push(restore);
    const fault = this.fault(restore);
    if (fault) throw fault;
    try {
      this.tables = applyRestore(this.tables, text);
    } catch (error) {
      if (!(error instanceof RestoreError)) throw error;
      throw new JunctionError('IPTABLES_RESTORE_FAILED', error.message, { line: error.line });
    }
    this.restores.push(restore);
    this.watch(this.tables);
  }

  /** Forgets what was sent so far. */
  forget(): void {
    this.restores.length = 0;
    this.attempts.length = 0;
    this.saves = 0;
    this.lists.length = 0;
  }

  /** Somebody else changes something. */
  tamper(table: Table, ...lines: readonly string[]): void {
    this.tables = applyRestore(this.tables, `*${table}\n${lines.join('\n')}\nCOMMIT\n`);
  }

  /** The lines that were sent, without tables and commits. */
  get sent(): readonly string[] {
    return this.restores.flatMap(({ table, text }) =>
      text
        .split('\n')
        .filter((line) => line !== '' && line !== 'COMMIT' && !line.startsWith('*'))
        .map((line) => `${table} ${line}`),
    );
  }

  /** The whole state, in order. */
  get text(): string {
    return printTables(this.tables);
  }

  rulesOf(table: Table, chain: string): readonly string[] {
    return this.tables.get(table)?.get(chain)?.rules.map(printRule) ?? [];
  }

  chains(table: Table): readonly string[] {
    return [...(this.tables.get(table)?.keys() ?? [])].sort();
  }
}

interface PrintOptions {
  readonly counters: boolean;
  /** As a save prints rules: addresses first, with a mask, probabilities as the kernel has them. */
  readonly saved: boolean;
}

export function printTables(
  tables: Tables,
  options: PrintOptions = { counters: false, saved: false },
): string {
  return [...tables].map(([table, chains]) => printTable(table, chains, options)).join('');
}

function printTable(table: string, chains: ReadonlyMap<string, ParsedChain>, options: PrintOptions): string {
  const heads = [...chains].map(([name, { policy }]) => `:${name} ${policy ?? '-'} [0:0]\n`);
  const rules = [...chains].flatMap(([name, chain]) =>
    chain.rules.map((rule) => {
      const { packets, bytes } = rule.counters ?? { packets: 0, bytes: 0 };
      const counters = options.counters ? `[${packets}:${bytes}] ` : '';
      return `${counters}-A ${name} ${printRule(options.saved ? asSaved(rule) : rule)}`.trimEnd() + '\n';
    }),
  );
  return `*${table}\n${heads.join('')}${rules.join('')}COMMIT\n`;
}

/** As a save prints it: addresses first. */
export function asSaved({ matches, target }: ParsedRule): ParsedRule {
  const isAddress = ({ kind }: Match): boolean => kind === 'source' || kind === 'destination';
  const sourceFirst = (a: Match, b: Match): number => (a.kind === b.kind ? 0 : a.kind === 'source' ? -1 : 1);
  return {
    matches: [
      ...matches.filter(isAddress).map(withMask).sort(sourceFirst),
      ...matches.filter((match) => !isAddress(match)).map(withBits),
    ],
    target,
  };
}

function withMask(match: Match): Match {
  if (match.kind !== 'source' && match.kind !== 'destination') return match;
  const { cidr } = match;
  const mask = cidr.includes(':') ? '/128' : '/32';
  return cidr.includes('/') ? match : { ...match, cidr: `${cidr}${mask}` as typeof cidr };
}

function withBits(match: Match): Match {
  if (match.kind !== 'statistic') return match;
  return { ...match, probability: (probabilityBits(match.probability) / 2 ** 31).toFixed(11) };
}

/**
 * The state as far as its order means anything: chains by name; in the kernel's own chains and among services the
 * order of rules is free, within a service and for the last rule of KUBE-SERVICES it is not.
 */
export function meaningOf(tables: Tables): readonly string[] {
  return [...tables].flatMap(([table, chains]) =>
    [...chains]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([chain, { policy, rules }]) => {
        const texts = rules.map(printRule).map(oneMark);
        const ordered = policy !== undefined ? texts.sort() : SHARED.has(chain) ? byOwner(texts) : texts;
        return [`${table} ${chain}`, ...ordered.map((text) => `  ${text}`)];
      }),
  );
}

/** The kernel keeps the same for both writings. */
function oneMark(text: string): string {
  return text.replace(/--set-xmark (\w+)\/\1$/, '--or-mark $1');
}

const SHARED: ReadonlySet<string> = new Set([
  'KUBE-SERVICES',
  'KUBE-EXTERNAL-SERVICES',
  'KUBE-NODEPORTS',
  'KUBE-PROXY-FIREWALL',
  'KUBE-FIREWALL',
]);

function byOwner(texts: readonly string[]): readonly string[] {
  const isTail = (text: string): boolean => text.includes('this must be the last rule');
  const tailStart = texts.findIndex(isTail);
  const body = tailStart < 0 ? texts : texts.slice(0, tailStart);
  const ownerOf = (text: string): string => {
    const name = /--comment "?(\S+?)["\s]/.exec(text)?.[1] ?? '';
    return `${name} ${/-p (\w+)/.exec(text)?.[1] ?? ''}`;
  };
  const sorted = [...body].sort((a, b) => (ownerOf(a) < ownerOf(b) ? -1 : ownerOf(a) > ownerOf(b) ? 1 : 0));
  return [...sorted, ...(tailStart < 0 ? [] : texts.slice(tailStart))];
}

/** As by netlink: the kernel takes all of it, or it is left to whoever finds out why not. */
class FakeDraft implements StepDraft {
  readonly #kernel: FakeKernel;
  readonly #table: Table;
  readonly #writes: ChainWrite[] = [];

  constructor(kernel: FakeKernel, table: Table) {
    this.#kernel = kernel;
    this.#table = table;
  }

  get chains(): number {
    return this.#writes.length;
  }

  get rules(): number {
    return this.#writes.reduce((sum, { rules }) => sum + rules.length, 0);
  }

  add(chain: ChainWrite): boolean {
    this.#writes.push(chain);
    return true;
  }

  async commit(): Promise<number | undefined> {
    try {
      const pieces = [piece(undefined, { writes: this.#writes })];
      const bytes = await this.#kernel.commit({ table: this.#table, pieces });
      this.#kernel.drafted++;
      return bytes;
    } catch (error) {
      if (isRefusal(error)) return undefined;
      throw error;
    }
  }
}
