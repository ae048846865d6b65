/**
 * Proof after each sync: a sample of packets is walked through the rules in the kernel and compared with the plan. What differs
 * twice under the same plan is a disagreement: a rule that was not written, one that another program deleted or put before
 * ours, or an error of this program.
 *
 * It runs beside syncs and never during one, and takes a hundredth of one core's time at most.
 */
import { differencesFrom, outcomesOf } from '../../explain/kernel.ts';
import { plannedFor } from '../../explain/planned.ts';
import type { Disagreement, ProofStatus } from '../../explain/status.ts';
import type { FamilySubject, Subject } from '../../explain/subject.ts';
import { hostPort } from '../../model/ip.ts';
import type { Packet } from '../../plan/decide.ts';
import type { PlanChange } from '../../plan/types.ts';
import type { Clock } from '../../time/clock.ts';
import { wait } from '../../time/wait.ts';
import { ProofBudget } from './budget.ts';
import { type ProofSample, ProofSamples } from './samples.ts';

export type ProofResult = 'agrees' | 'disagrees' | 'not_evaluated';

interface ProofOptions {
  readonly subject: () => Subject;
  readonly family: () => FamilySubject;
  /** The kernel should have all of the plan now: no sync is under way, and nothing waits to be written. */
  readonly isSettled: () => boolean;
  readonly clock: Clock;
  /** Milliseconds of a processor that this process has used, where that is what a walk costs; unset: it starts programs. */
  readonly usedMs?: (() => number) | undefined;
  /** Milliseconds since the epoch. */
  readonly wallTime: () => number;
  /** Of each packet that was compared; `costMs` is what it counts with. */
  readonly onPacket: (result: ProofResult, ms: number, costMs: number) => void;
  readonly onDisagreement: (disagreement: Disagreement) => void;
  readonly onResolved: (disagreement: Disagreement) => void;
}

const SHARE = 0.01;
const MOST_SAVED_MS = 200;
/** Disagreements that are kept, and looked at again each time. */
const MOST_KEPT = 10;
/** After a sync. Changes that follow at once go first: a walk may start programs, and a start after an upgrade has much else to do. */
const REST_MS = 1000;
/** Without a sync. */
const PERIOD_MS = 10_000;
/** What another program deleted is repaired by then, unless it cannot be. */
const SECOND_LOOK_MS = 1000;

interface Look {
  readonly result: ProofResult;
  /** In words, of what differs. */
  readonly planned: string;
  readonly kernel: string;
}

const NOT_EVALUATED: Look = { result: 'not_evaluated', planned: '', kernel: '' };

export class Proof {
  readonly #options: ProofOptions;
  readonly #budget: ProofBudget;
  readonly #samples = new ProofSamples();
  /** By the packet in words. */
  readonly #known = new Map<string, { readonly sample: ProofSample; readonly words: Disagreement }>();
  /** Counts syncs: what was read under one of them says nothing about another. */
  #generation = 0;
  #packets = 0;
  #count = 0;
  #lastAt: number | undefined;
  #running: Promise<void> | undefined;
  #cancel: (() => void) | undefined;
  #dueAt = Number.POSITIVE_INFINITY;
  readonly #stop = new AbortController();

  constructor(options: ProofOptions) {
    this.#options = options;
    this.#budget = new ProofBudget({ clock: options.clock, share: SHARE, mostSavedMs: MOST_SAVED_MS });
  }

  get status(): ProofStatus {
    const lastAt = this.#lastAt;
    return {
      isOn: true,
      packets: this.#packets,
      ...(lastAt !== undefined && { lastAt }),
      disagreements: this.disagreements,
      disagreementCount: this.#count,
    };
  }

  /** Those that still are. */
  get disagreements(): readonly Disagreement[] {
    return [...this.#known.values()].map(({ words }) => words);
  }

  /** A sync has ended, and these are in the kernel now. */
  synced(changes: readonly PlanChange[]): void {
    this.#generation++;
    this.#samples.written(changes);
    this.#arm(REST_MS);
  }

  /** What is being read is not waited for: a program may hang, and what it says does not matter any more. */
  stop(): void {
    this.#stop.abort();
    this.#cancel?.();
  }

  /** Not later than it was due before: syncs that follow each other do not put it off. */
  #arm(delayMs: number): void {
    const { clock } = this.#options;
    if (this.#stop.signal.aborted || this.#running) return;
    const now = clock.now();
    const dueAt = now + Math.max(delayMs, this.#budget.waitMs);
    if (dueAt >= this.#dueAt) return;
    this.#dueAt = dueAt;
    this.#cancel?.();
    this.#cancel = clock.schedule(dueAt - now, () => {
      this.#dueAt = Number.POSITIVE_INFINITY;
      this.#running = this.#run().finally(() => {
        this.#running = undefined;
        this.#arm(this.#samples.areDue ? SECOND_LOOK_MS : PERIOD_MS);
      });
    });
  }

  async #run(): Promise<void> {
    const { family, isSettled } = this.#options;
    const mayGoOn = (): boolean => !this.#stop.signal.aborted && isSettled() && this.#budget.hasSome;
    for (const { sample } of this.#known.values()) {
      if (!mayGoOn()) return;
      if (family().plan.servicePorts.has(sample.id)) await this.#examine(sample);
      else this.#agree(printPacket(sample.packet)); // nobody serves it any more
    }
    for (const sample of this.#samples.next(family())) {
      await this.#examine(sample);
      if (!mayGoOn()) return;
    }
  }

  async #examine(sample: ProofSample): Promise<void> {
    const { clock, usedMs, wallTime, onPacket } = this.#options;
    const key = printPacket(sample.packet);
    const started = clock.now();
    const usedBefore = usedMs?.();
    let look = await this.#look(sample.packet);
    const ms = clock.now() - started;
    // On a busy machine most of the time is a wait for a processor.
    const usedNow = usedMs && usedBefore !== undefined ? Math.min(ms, usedMs() - usedBefore) : ms;
    this.#budget.spend(usedNow);
    if (look.result === 'disagrees' && !this.#known.has(key)) look = await this.#lookAgain(sample);
    if (look.result === 'agrees') this.#agree(key);
    if (look.result === 'disagrees' && !this.#known.has(key)) this.#disagree(key, sample, look);
    this.#packets++;
    this.#lastAt = wallTime();
    onPacket(look.result, ms, usedNow);
  }

  /** Under another plan it is another question. */
  async #lookAgain(sample: ProofSample): Promise<Look> {
    const generation = this.#generation;
    await wait(this.#options.clock, SECOND_LOOK_MS, this.#stop.signal);
    const look = this.#stop.signal.aborted ? NOT_EVALUATED : await this.#look(sample.packet);
    if (this.#generation === generation) return look;
    this.#samples.again(sample);
    return NOT_EVALUATED;
  }

  async #look(packet: Packet): Promise<Look> {
    const { subject, family, isSettled } = this.#options;
    const familySubject = family();
    const { kernel, host, plan } = familySubject;
    const generation = this.#generation;
    if (!kernel || !isSettled()) return NOT_EVALUATED;
    const its = { ...host, nodeIp: plan.view.nodeIp };
    const walked = await kernel.walk(packet, its).catch(() => undefined);
    if (!walked || !isSettled() || this.#generation !== generation) return NOT_EVALUATED;
    const planned = plannedFor(subject(), familySubject, packet);
    const differences = differencesFrom(planned, outcomesOf(walked));
    if (differences.length === 0) return { result: 'agrees', planned: '', kernel: '' };
    const isUncertain = walked.notes.some((note) => /^not evaluated|changed while/.test(note));
    if (isUncertain) return NOT_EVALUATED;
    return { result: 'disagrees', ...inWords(differences) };
  }

  #disagree(key: string, sample: ProofSample, { planned, kernel }: Look): void {
    const { wallTime, onDisagreement } = this.#options;
    if (this.#known.size >= MOST_KEPT) return; // where nothing works, ten cases say so
    const words = { since: wallTime(), service: sample.service, packet: key, planned, kernel };
    this.#count++;
    this.#known.set(key, { sample, words });
    onDisagreement(words);
  }

  #agree(key: string): void {
    const known = this.#known.get(key);
    if (!known) return;
    this.#known.delete(key);
    this.#options.onResolved(known.words);
  }
}

/** `planned: …; kernel: …`: one that names a rule says more than one that says that something is missing. */
function inWords(differences: readonly string[]): Pick<Look, 'planned' | 'kernel'> {
  const [first = '', ...more] = differences.toSorted(
    (a, b) => Number(b.includes(' by ')) - Number(a.includes(' by ')),
  );
  const [, planned = first, kernel = ''] = /^planned: (.*); kernel: (.*)$/s.exec(first) ?? [];
  return { planned, kernel: more.length > 0 ? `${kernel} (and ${more.length} more differences)` : kernel };
}

/** `10.244.1.7 → 10.96.0.10:80/TCP, in by eth0` */
function printPacket({ source, destination, port, protocol, inInterface }: Packet): string {
  const via = inInterface === undefined ? 'sent by this node' : `in by ${inInterface}`;
  return `${source} → ${hostPort(destination, port)}/${protocol}, ${via}`;
}
