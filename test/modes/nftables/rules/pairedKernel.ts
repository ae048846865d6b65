/** The kernel in memory and the real one, told the same: they must say the same, and have the same. */
import { deepStrictEqual } from 'node:assert';
import { printElement } from '../../../../src/modes/nftables/rules/print.ts';
import { isOfIntervals } from '../../../../src/modes/nftables/rules/table.ts';
import type {
  DifferingElement,
  Element,
  ForeignElement,
  NftClient,
  Ruleset,
  SetsByName,
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

  override async differing(
    elements: readonly Element[],
    sets: SetsByName,
  ): Promise<readonly DifferingElement[]> {
    await this.#catchUp();
    const found = await super.differing(elements);
    deepStrictEqual(await this.#real.differing(elements, sets), found);
    return found;
  }

  override async lookUp(elements: readonly Element[], sets: SetsByName): Promise<readonly ForeignElement[]> {
    await this.#catchUp();
    const found = await super.lookUp(elements);
    const print = (list: readonly ForeignElement[]): readonly string[] =>
      list.map(({ element, isThere }) => `${isThere} ${element.set} ${printElement(element)}`);
    deepStrictEqual(print(await this.#real.lookUp(elements, sets)), print(found));
    return found;
  }

  override async sizes(): Promise<ReadonlyMap<string, number | undefined>> {
    await this.#catchUp();
    const sizes = await super.sizes();
    const real = await this.#real.sizes();
    // Older kernels do not say.
    const known = [...real].filter(([name, size]) => size !== undefined && !this.#isInterval(name));
    deepStrictEqual(
      new Map(known.map(([name]) => [name, real.get(name)])),
      new Map(known.map(([name]) => [name, sizes.get(name)])),
    );
    return sizes;
  }

  #isInterval(name: string): boolean {
    const set = this.table?.sets.get(name)?.set;
    return set !== undefined && isOfIntervals(set);
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
