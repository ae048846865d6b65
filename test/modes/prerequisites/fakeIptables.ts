/**
 * An iptables-restore whose kernel lacks what a test says. Like the real ones: the nft variant refuses a transaction as
 * a whole and names every refused line; legacy looks at the table at its COMMIT and names that; a missing library ends
 * the program at its line.
 */
import { JunctionError } from '../../../src/errors.ts';
import { featuresOf, type Variant } from '../../../src/modes/iptables/variant.ts';
import type { TakeText } from '../../../src/modes/iptables/client.ts';
import type { TrialClient } from '../../../src/modes/prerequisites/machine.ts';
import type { Family } from '../../../src/model/ip.ts';

export interface FakeIptablesOptions {
  readonly family?: Family;
  readonly variant?: Variant;
  /** Words that the kernel refuses: `-m recent`. */
  readonly refuses?: readonly string[];
  /** Words for which the program has no library. */
  readonly lacksLibrary?: readonly string[];
  readonly lacksTables?: readonly string[];
  /** What it calls the deletion of a chain: CHAIN_USER_DEL before 1.8.9. */
  readonly deletion?: string;
  /** Names the COMMIT instead of the lines, as the first nft variants did. */
  readonly namesNoLines?: boolean;
  /** Tables with a rule of nft. */
  readonly incompatible?: readonly string[];
  /** Thrown by every restore. */
  readonly error?: JunctionError;
}

export class FakeIptables implements TrialClient {
  readonly family: Family;
  readonly variant: Variant;
  readonly version = '1.8.9';
  readonly reason = 'a test asked for it';
  readonly features = featuresOf('1.8.9', true, 5);
  /** Chains that are in the kernel now, with their rules. */
  readonly chains = new Map<string, readonly string[]>();
  readonly inputs: string[] = [];
  readonly #options: FakeIptablesOptions;
  readonly #missing: readonly string[];

  constructor(options: FakeIptablesOptions, missingPrograms: readonly string[] = []) {
    this.#options = options;
    this.#missing = missingPrograms;
    this.family = options.family ?? 'IPv4';
    this.variant = options.variant ?? 'nft';
  }

  async readTable(table: string, take: TakeText): Promise<void> {
    const isIncompatible = this.#options.incompatible?.includes(table);
    await take(
      isIncompatible ? `# Table \`${table}' is incompatible, use 'nft' tool.\n` : `*${table}\nCOMMIT\n`,
    );
  }

  async restore(table: string | undefined, input: string): Promise<void> {
    this.inputs.push(input);
    if (this.#options.error) throw this.#options.error;
    const program = this.family === 'IPv4' ? 'iptables-restore' : 'ip6tables-restore';
    if (this.#missing.includes(program))
      throw new JunctionError('PROGRAM_MISSING', `the program ${program} is not installed`);
    const lines = input.trimEnd().split('\n');
    const [head] = lines;
    if (head !== `*${table}` || lines.at(-1) !== 'COMMIT')
      throw new Error(`not a restore of ${table}: ${input}`);
    if (this.#options.lacksTables?.includes(table ?? ''))
      throw failed(`iptables-restore v1.8.9 (legacy): unable to initialize table '${table}'`);
    const chains = new Map(this.chains);
    const errors: string[] = [];
    for (const [index, line] of lines.slice(1, -1).entries()) {
      const error = this.#line(`${table} `, line, chains);
      if (error !== undefined) errors.push(`line ${index + 2}: ${error}`);
    }
    if (errors.length > 0) throw failed(this.#complaint(errors, lines.length));
    this.chains.clear();
    for (const [name, rules] of chains) this.chains.set(name, rules);
  }

  /** What the kernel says against a line. */
  #line(table: string, line: string, chains: Map<string, readonly string[]>): string | undefined {
    const [word = '', name = ''] = line.split(' ');
    if (word.startsWith(':')) {
      if (word.startsWith(':KUBE-')) chains.set(table + word.slice(1), []);
      return undefined;
    }
    const rules = chains.get(table + name);
    if (!rules) throw new Error(`no chain ${name} for ${line}`);
    if (word === '-X') {
      if (rules.length > 0)
        return `${this.#options.deletion ?? 'CHAIN_DEL'} failed (Device or resource busy): chain ${name}`;
      chains.delete(table + name);
      return undefined;
    }
    const library = this.#options.lacksLibrary?.find((words) => line.includes(words));
    if (library !== undefined)
      throw failed(
        `iptables-restore v1.8.9: Couldn't load match \`${library.slice(3)}':No such file or directory\n\nError occurred at line: 3`,
      );
    if (this.#options.refuses?.some((words) => `${line} `.includes(`${words} `)) === true)
      return `RULE_APPEND failed (No such file or directory): rule in chain ${name}`;
    chains.set(table + name, [...rules, line]);
    return undefined;
  }

  #complaint(errors: readonly string[], commit: number): string {
    if (this.variant === 'nft' && this.#options.namesNoLines !== true)
      return `iptables-restore v1.8.9 (nf_tables): \n${errors.join('\n')}`;
    return `Warning: Extension x revision 0 not supported, missing kernel module?\niptables-restore: line ${commit} failed`;
  }
}

function failed(detail: string): JunctionError {
  return new JunctionError('IPTABLES_RESTORE_FAILED', 'iptables-restore failed with status 4', { detail });
}
