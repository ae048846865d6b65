/** Chains in which many services have rules, with the rules of all of them. */
import type { ServicePortId } from '../../../model/servicePort.ts';
import type { SharedChainText } from './edit.ts';
import type { ChainRef, Fragment, SharedRule } from './fragment.ts';
import { printRule } from './print.ts';

export class SharedChains {
  readonly #chains: readonly (SharedChainText & { readonly rules: string[] })[];

  constructor(chains: readonly ChainRef[]) {
    this.#chains = chains.map(({ table, chain }) => ({ table, name: chain, rules: [] }));
  }

  /** One service port at a time. */
  *read(fragments: Iterable<readonly [ServicePortId, Fragment]>): Generator<void> {
    for (const [, { shared }] of fragments) {
      for (const rule of shared) this.#add(rule);
      yield;
    }
  }

  /** `tail`: rules that must be the last of their chain. */
  texts(tail: readonly SharedRule[]): readonly SharedChainText[] {
    for (const rule of tail) this.#add(rule);
    return this.#chains;
  }

  #add({ table, chain, rule }: SharedRule): void {
    this.#chains.find((each) => each.table === table && each.name === chain)?.rules.push(printRule(rule));
  }
}
