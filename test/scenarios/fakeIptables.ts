/** The iptables programs, played by the stand-in for the kernel: what they save is what they were told to restore. */
import { ruleKey } from '../../src/modes/iptables/rules/words.ts';
import { asSaved } from '../modes/iptables/rules/asSaved.ts';
import type { MemoryChain, MemoryTables } from '../modes/iptables/rules/tables.ts';
import { applyRestore, BUILT_IN_CHAINS, RestoreError } from '../modes/iptables/rules/restore.ts';
import type { CommandRunner, RunResult } from '../../src/system/processes.ts';

export class FakeIptables {
  #tables: MemoryTables = new Map();

  /** Of ipset: a rule cannot match a set that is not there, and that set cannot go. */
  hasSet: (name: string) => boolean = () => true;

  get tables(): MemoryTables {
    return this.#tables;
  }

  usesSet(name: string): boolean {
    return [...this.#tables.values()].some((chains) =>
      [...chains.values()].some(({ rules }) =>
        rules.some(({ options }) =>
          options.some((each) => each.name === '--match-set' && each.values[0] === name),
        ),
      ),
    );
  }

  /** Another program's restore. */
  change(text: string): void {
    this.#tables = applyRestore(this.#tables, text);
  }

  readonly runner: CommandRunner = ([program, ...args], options = {}) => {
    if (args[0] === '--version') return ended({ stdout: 'iptables v1.8.9 (nf_tables)\n' });
    if (program.endsWith('-save')) return ended({ stdout: this.save(valueAfter(args, '-t')) });
    if (args.includes('-S')) {
      const listed = this.#list(valueAfter(args, '-t'), chainAfter(args, '-S'));
      const stdout = listed.stdout?.replaceAll(/ -c \d+ \d+/g, '');
      return ended(args.includes('-v') || stdout === undefined ? listed : { ...listed, stdout });
    }
    if (program.endsWith('-restore')) return ended(this.#restore(options.stdin ?? ''));
    const verb = args.find((each) => /^-[CIADNXF]$/.test(each));
    if (verb === undefined) throw new Error(`nobody plays ${program} ${args.join(' ')}`);
    return ended(this.#verb(verb, args));
  };

  /** `-w 5 -I CHAIN -t TABLE …` */
  #verb(verb: string, args: readonly string[]): Partial<RunResult> {
    const table = valueAfter(args, '-t');
    const chain = valueAfter(args, verb);
    const words = args.slice(args.indexOf('-t') + 2);
    const text = words.map((word) => (word.includes(' ') ? `"${word}"` : word)).join(' ');
    if (verb !== '-C') return this.#restore(`*${table}\n${`${verb} ${chain} ${text}`.trim()}\nCOMMIT\n`);
    const rules = (this.#tables.get(table) ?? builtIn(table)).get(chain)?.rules ?? [];
    if (rules.some((rule) => rule.key === ruleKey(text))) return {};
    return { code: 1, stderr: 'iptables: Bad rule (does a matching rule exist in that chain?).\n' };
  }

  save(table: string): string {
    const chains = this.#tables.get(table) ?? builtIn(table);
    return printTable(table, chains);
  }

  /** As `iptables -v -S` prints it, of one chain or of all. */
  #list(table: string, name: string | undefined): Partial<RunResult> {
    const chains = this.#tables.get(table) ?? builtIn(table);
    const chain = name === undefined ? undefined : chains.get(name);
    if (name === undefined || chain)
      return { stdout: listChains(name !== undefined && chain ? new Map([[name, chain]]) : chains) };
    const text = `chain \`${name}' in table \`${table}' is incompatible, use 'nft' tool.`;
    return { code: 1, stderr: `iptables v1.8.9 (nf_tables): ${text}\n\n` };
  }

  #restore(text: string): Partial<RunResult> {
    for (const [, name = ''] of text.matchAll(/--match-set (\S+)/g))
      if (!this.hasSet(name)) return { code: 2, stderr: `iptables-restore: Set ${name} doesn't exist.\n` };
    try {
      this.#tables = applyRestore(this.#tables, text);
      return {};
    } catch (error) {
      if (!(error instanceof RestoreError)) throw error;
      this.#tables = error.after;
      return { code: 4, stderr: `iptables-restore: line ${error.line} failed: ${error.reason}.\n` };
    }
  }
}

function valueAfter(args: readonly string[], option: string): string {
  return args[args.indexOf(option) + 1] ?? '';
}

function chainAfter(args: readonly string[], option: string): string | undefined {
  const value = valueAfter(args, option);
  return value.startsWith('-') ? undefined : value;
}

/** Heads first, then rules, with counters before the target. */
function listChains(chains: ReadonlyMap<string, MemoryChain>): string {
  const heads = [...chains].map(([name, { policy }]) =>
    policy === undefined ? `-N ${name}` : `-P ${name} ${policy} -c 0 0`,
  );
  const rules = [...chains].flatMap(([name, chain]) =>
    chain.rules.map(({ text, packets = 0 }) => {
      const [, matches = '', target = ''] = /^(.*?)((?:^| )-[jg] \S+(?: --.*)?)?$/.exec(asSaved(text)) ?? [];
      return ['-A', name, matches, `-c ${packets} 0`, target.trim()].filter((part) => part !== '').join(' ');
    }),
  );
  return [...heads, ...rules, ''].join('\n');
}

function ended(result: Partial<RunResult>): Promise<RunResult> {
  return Promise.resolve({ code: 0, signal: null, stdout: '', stderr: '', ...result });
}

function builtIn(table: string): ReadonlyMap<string, MemoryChain> {
  return new Map((BUILT_IN_CHAINS.get(table) ?? []).map((name) => [name, { policy: 'ACCEPT', rules: [] }]));
}

/** As `iptables-save -c` prints a table. */
export function printTable(table: string, chains: ReadonlyMap<string, MemoryChain>): string {
  let heads = '';
  let rules = '';
  for (const [name, chain] of chains) {
    heads += `:${name} ${chain.policy ?? '-'} [0:0]\n`;
    for (const { text, packets = 0 } of chain.rules) rules += `[${packets}:0] -A ${name} ${asSaved(text)}\n`;
  }
  return `*${table}\n${heads}${rules}COMMIT\n`;
}
