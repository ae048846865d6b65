/** What goes wrong between a mode and the kernel: the same for a kernel in memory and for a real one. */
import type { IpvsClient, IpvsEdit } from '../../src/modes/ipvs/rules/client.ts';
import type { NftTables } from '../../src/modes/nftables/rules/table.ts';
import type { CommandRunner } from '../../src/system/processes.ts';

/** The process is gone: nothing after this takes place. */
export class Killed extends Error {
  override name = 'Killed';
}

export class Faults {
  /** `everything`, `deletions`, or a text: writes that contain it are refused. */
  refused: string | undefined;
  losesNextAnswer = false;
  /** After so many writes the process is dead. */
  stopsAfter = Number.POSITIVE_INFINITY;
  /** After each write that took effect, and before the next begins. */
  onWrite: () => unknown = () => {};

  refuses(write: string, isDeletion: boolean): boolean {
    if (this.refused === 'everything') return true;
    if (this.refused === 'deletions') return isDeletion;
    return this.refused !== undefined && !isDeletion && write.includes(this.refused);
  }

  checkAlive(): void {
    if (this.stopsAfter <= 0) throw new Killed('the process was killed');
  }

  /** True: the answer to this write is lost. */
  async written(): Promise<boolean> {
    this.stopsAfter--;
    await this.onWrite();
    const isLost = this.losesNextAnswer;
    this.losesNextAnswer = false;
    return isLost;
  }
}

export function faultyNft(tables: NftTables, faults: Faults): NftTables {
  const commit: NftTables['commit'] = async (parts) => {
    faults.checkAlive();
    const isRefused = parts.some(({ transaction }) =>
      transaction.some((operation) =>
        faults.refuses(JSON.stringify(operation), operation.kind.startsWith('delete')),
      ),
    );
    if (isRefused) return { state: 'refused', name: 'ENOMEM', operation: undefined };
    const outcome = await tables.commit(parts);
    if (outcome.state === 'done' && (await faults.written())) throw new Error('the answer was lost');
    return outcome;
  };
  return {
    commit,
    list: () => tables.list(),
    table: (name) => ({
      commit: (transaction) => commit([{ table: name, transaction }]),
      affinityEntries: (...asked) => tables.table(name).affinityEntries(...asked),
    }),
  };
}

export function faultyIpvs(client: IpvsClient, faults: Faults): IpvsClient {
  return {
    readSet: (name) => client.readSet(name),
    readDevice: () => client.readDevice(),
    readServers: () => client.readServers(),
    readDestinations: (servers) => client.readDestinations(servers),
    apply: async (edits) => {
      const outcomes = [];
      for (const edit of edits) {
        faults.checkAlive();
        if (faults.refuses(JSON.stringify(edit), isDeletion(edit))) {
          outcomes.push({ state: 'refused', name: 'ENOMEM' } as const);
          continue;
        }
        outcomes.push(...(await client.apply([edit])));
        if (await faults.written()) throw new Error('the answer was lost');
      }
      return outcomes;
    },
  };
}

function isDeletion({ kind }: IpvsEdit): boolean {
  return kind.startsWith('delete') || kind === 'unbind' || kind === 'destroySet';
}

/** A refused line of a restore, or a command: nothing of it takes effect, and the program names the line. */
export function faultyRunner(runner: CommandRunner, faults: Faults): CommandRunner {
  return async (argv, options = {}) => {
    const verb = argv.findIndex((each) => /^-[IADNXF]$/.test(each));
    if (verb < 0 && !argv[0].endsWith('-restore')) return runner(argv, options);
    faults.checkAlive();
    const lines = verb < 0 ? (options.stdin ?? '').split('\n') : [argv.slice(verb).join(' ')];
    const refused = lines.findIndex(
      (line) => /^[-:]/.test(line) && faults.refuses(line, /^-[DXF]/.test(line)),
    );
    if (refused >= 0) return ended(4, `line ${refused + 1}: RULE_APPEND failed (Cannot allocate memory)\n`);
    const result = await runner(argv, options);
    if (result.code !== 0 || !(await faults.written())) return result;
    return { ...ended(0, ''), code: null, signal: 'SIGKILL' };
  };
}

/** A runner whose faults are those of whoever was started last. */
export function armable(runner: CommandRunner) {
  let current = new Faults();
  return {
    runner: ((argv, options) => faultyRunner(runner, current)(argv, options)) satisfies CommandRunner,
    arm: <Client>(client: Client, faults: Faults): Client => {
      current = faults;
      return client;
    },
  };
}

function ended(code: number, stderr: string) {
  return { code, signal: null, stdout: '', stderr };
}
