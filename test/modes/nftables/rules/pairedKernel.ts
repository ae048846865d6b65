/** The kernel in memory and the real one, told the same: they must say the same, and have the same. */
import { deepStrictEqual } from 'node:assert';
import { printElement } from '../../../../src/modes/nftables/rules/print.ts';
import type {
  NftClient,
  Ruleset,
  TableState,
  TableTransaction,
  TransactionOutcome,
} from '../../../../src/modes/nftables/rules/table.ts';
import type { Family } from '../../../../src/model/ip.ts';
import { FakeNftKernel } from './fakeKernel.ts';

export class PairedKernel extends FakeNftKernel {
  readonly #real: NftClient;
  /** Tampering is told without waiting. */
  #waiting: TableTransaction[] = [];

  constructor(real: NftClient, family: Family) {
    super(family);
    this.#real = real;
  }

  override async commit(transaction: TableTransaction): Promise<TransactionOutcome> {
    await this.#catchUp();
    const outcome = await super.commit(transaction);
    const real = await this.#real.commit(transaction);
    deepStrictEqual(word(real), word(outcome), JSON.stringify(real));
    return outcome;
  }

  override async inspect(wanted: Ruleset, only?: ReadonlySet<string>): Promise<TableState | undefined> {
    await this.#catchUp();
    const state = await super.inspect(wanted, only);
    deepStrictEqual(plain(await this.#real.inspect(wanted, only)), plain(state));
    return state;
  }

  override tamper(...transaction: TableTransaction): void {
    super.tamper(...transaction);
    this.#waiting.push(transaction);
  }

  async #catchUp(): Promise<void> {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const transaction of waiting) deepStrictEqual(word(await this.#real.commit(transaction)), 'done');
  }
}

function word(outcome: TransactionOutcome): string {
  return outcome.state === 'refused' ? outcome.name : outcome.state;
}

/** In one order, and in words. */
function plain(state: TableState | undefined): unknown {
  if (!state) return undefined;
  const sorted = <T>(map: ReadonlyMap<string, T>): readonly (readonly [string, T])[] =>
    [...map].sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    sets: sorted(state.sets),
    chains: sorted(state.chains),
    elements: sorted(state.elements).map(([name, elements]) => [
      name,
      sorted(elements).map(([key, element]) => [key, printElement(element)]),
    ]),
  };
}
