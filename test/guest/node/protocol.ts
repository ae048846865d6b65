/** What a suite says to Junction on node1, and hears: structured messages between parent and child. */
import type { Fate } from '../../scenarios/packets.ts';
import type { Scenario } from '../../scenarios/scenario.ts';

export interface NodeOperations {
  /** Answers what should become of each of the rows; `undefined`: that is left to chance. */
  readonly apply: { readonly input: Scenario; readonly output: readonly (Fate | undefined)[] };
  readonly resync: { readonly input: null; readonly output: null };
}

export type NodeOperationName = keyof NodeOperations;

export type NodeCall = {
  readonly [Name in NodeOperationName]: {
    readonly id: number;
    readonly operation: Name;
    readonly input: NodeOperations[Name]['input'];
  };
}[NodeOperationName];

export type FromNode =
  | { readonly ready: true }
  | { readonly id: number; readonly output: unknown }
  | { readonly id: number; readonly error: string };
