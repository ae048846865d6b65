/** What runs in the guest: suites of tests, one after another. To add one, put it into suites/index.ts. */
import type { Lab } from '../../lab/lab.ts';
import type { PacketSender } from '../scenarios/labPackets.ts';
import type { GuestNode } from './guestNode.ts';
import type { GuestMode } from './node/proxiers.ts';

export interface GuestSuite {
  readonly name: string;
  /** By what they show. They run in this order, and one may go on from where another left the kernel. */
  readonly tests: Readonly<Record<string, GuestTest>>;
}

/** Fails by throwing; `node:assert` is at hand in the guest, where there is no vitest. */
export type GuestTest = (context: GuestContext) => Promise<void>;

/** A failure whose message says all; what else is thrown is shown with its stack. */
export class Mismatch extends Error {}

/** What the tests of one suite share. All of it is made when first asked for, and gone when the suite is over. */
export interface GuestContext {
  /** A cluster whose node1 nobody has touched before. */
  lab(): Promise<Lab>;
  /** Junction in the network of node1. */
  node(mode: GuestMode): Promise<GuestNode>;
  sender(): Promise<PacketSender>;
}
