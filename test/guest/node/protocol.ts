/** What a suite says to Junction on node1, and hears: structured messages between parent and child. */
import type { Family } from '../../../src/model/ip.ts';
import type { KernelDifference, WalkResult } from '../../../src/modes/kernelRules.ts';
import type { Packet } from '../../../src/plan/decide.ts';
import type { DrivenNode } from '../../contract/node.ts';
import type { Fate } from '../../scenarios/packets.ts';
import type { Scenario } from '../../scenarios/scenario.ts';

export interface AskedPacket {
  readonly family: Family;
  readonly packet: Packet;
}

export interface NodeOperations {
  /** Answers what should become of each of the rows; `undefined`: that is left to chance. */
  readonly apply: { readonly input: Scenario; readonly output: readonly (Fate | undefined)[] };
  /** What the rules in the kernel do with packets. */
  readonly walk: {
    readonly input: readonly AskedPacket[];
    readonly output: readonly WalkResult[];
  };
  /** Where the kernel differs from the plan. */
  readonly compare: { readonly input: Family; readonly output: readonly KernelDifference[] };
  /** What rules and elements have counted, by their text. */
  readonly counters: { readonly input: Family; readonly output: ReadonlyMap<string, number> };
  readonly resync: { readonly input: null; readonly output: null };
  readonly contract: { readonly input: ContractCall; readonly output: object | string | null };
}

/** What a step of the contract does with Junction; `open` begins a case. */
export type ContractCall = readonly [method: 'open' | ContractMethod, argument?: unknown];
export type ContractMethod =
  | Exclude<
      keyof DrivenNode,
      | 'isProtected'
      | 'settleMs'
      | 'watch'
      | 'packets'
      | 'perform'
      | 'missingForeign'
      | 'openConnections'
      | 'brokenConnections'
      | 'endConnections'
    >
  | 'fatesOf';

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
