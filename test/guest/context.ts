import { Lab } from '../../lab/lab.ts';
import { PacketSender } from '../scenarios/labPackets.ts';
import { GuestNode } from './guestNode.ts';
import type { GuestMode } from './node/proxiers.ts';
import type { GuestContext } from './suite.ts';

/** An emulated machine on a busy one is slow; waiting longer costs nothing where the answer comes. */
const ANSWER_MS = 30_000;

export class SuiteContext implements GuestContext {
  #lab: Promise<Lab> | undefined;
  #sender: Promise<PacketSender> | undefined;
  readonly #nodes = new Map<GuestMode, Promise<GuestNode>>();

  lab(): Promise<Lab> {
    this.#lab ??= startLab();
    return this.#lab;
  }

  sender(): Promise<PacketSender> {
    this.#sender ??= this.lab().then((lab) => new PacketSender(lab, { answerMs: ANSWER_MS }));
    return this.#sender;
  }

  node(mode: GuestMode): Promise<GuestNode> {
    const node = this.#nodes.get(mode) ?? this.lab().then((lab) => GuestNode.start(lab, mode));
    this.#nodes.set(mode, node);
    return node;
  }

  /** What could not be started needs no end, and the tests that wanted it have said so. */
  async close(): Promise<void> {
    for (const node of this.#nodes.values()) await node.then((each) => each.close()).catch(() => {});
    await this.#lab?.then((lab) => lab.close()).catch(() => {});
  }
}

async function startLab(): Promise<Lab> {
  const lab = await Lab.start({ sctp: true });
  if (lab.whyNoSctp === undefined) return lab;
  await lab.close();
  throw new Error(lab.whyNoSctp);
}
