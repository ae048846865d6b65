/** Long answers that are reduced in the thread that reads them, so that nobody else has to hold or decode them. */
import { ChainReducer } from './nftables/chainReducer.ts';
import { RuleReducer } from './nftables/ruleReducer.ts';

export type Reduction = 'rules' | 'chains';

interface Reducer {
  add(datagram: Uint8Array): void;
  finish(): Uint8Array<ArrayBuffer>;
}

export function reducerOf(reduction: Reduction): Reducer {
  return reduction === 'rules' ? new RuleReducer() : new ChainReducer();
}
