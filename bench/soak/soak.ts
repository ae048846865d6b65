/**
 * A mode under everything at once: services come, go and change, transactions fail, others change the rules, the process
 * is killed; and all the while clients of services that do not change must not notice.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lab } from '../../lab/lab.ts';
import { eventually } from '../../test/e2e/support/eventually.ts';
import { manifests } from '../../test/e2e/cluster.ts';
import type { SoakMode } from './modes.ts';
import { SoakNode } from './node.ts';
import { type Draw, drawsFrom, randomSlot } from './randomServices.ts';
import { STABLE_MANIFESTS, Traffic, type TrafficReport } from './traffic.ts';
import { strayLines, wrongPackets } from './verdict.ts';

export interface SoakOptions {
  readonly lab: Lab;
  readonly mode: SoakMode;
  readonly seconds: number;
  readonly seed: number;
  readonly slots: number;
  /** The program as users have it, and the one that fails now and then. */
  readonly programs: { readonly plain: string; readonly faulty: string };
  /** Where to keep all that the daemon says. */
  readonly logFile?: string | undefined;
  readonly say: (text: string) => void;
}

export interface SoakReport {
  readonly mode: string;
  readonly hasBackstop: boolean;
  readonly seconds: number;
  readonly seed: number;
  readonly changes: number;
  readonly starts: { readonly killed: number; readonly stopped: number };
  readonly tamperings: ReadonlyMap<string, number>;
  /** Of the daemon's log. */
  readonly said: ReadonlyMap<string, number>;
  readonly traffic: TrafficReport;
  readonly packetRows: number;
  readonly wrongPackets: readonly string[];
  readonly strayLines: readonly string[];
}

export function held({ traffic, wrongPackets: wrong, strayLines: stray }: SoakReport): boolean {
  const { lostSessions, lostConnections, lostDatagrams } = traffic;
  return [lostSessions, lostConnections, lostDatagrams, wrong, stray].every((list) => list.length === 0);
}

export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const node = await SoakNode.create(options.lab.host('node1'), options.mode, options.logFile);
  try {
    return await new Soak(options, node).run();
  } catch (error) {
    options.say(`the last that it said:\n${node.log.slice(-8000)}`);
    throw error;
  } finally {
    await node.close();
  }
}

/** One in so many finds nobody at home. */
const DEAD = 10;
/** Without faults and changes, everything is right by then, on a busy machine too. */
const SETTLE_MS = 60_000;

class Soak {
  readonly #options: SoakOptions;
  readonly #node: SoakNode;
  readonly #traffic: Traffic;
  readonly #draw: Draw;
  readonly #tamperings = new Map<string, number>();
  readonly #starts = { killed: 0, stopped: 0 };
  #changes = 0;
  #isOver = false;

  constructor(options: SoakOptions, node: SoakNode) {
    this.#options = options;
    this.#node = node;
    this.#traffic = new Traffic(options.lab, options.mode.hasBackstop);
    this.#draw = drawsFrom(options.seed);
  }

  async run(): Promise<SoakReport> {
    const { seconds, seed, slots, programs, mode, say } = this.#options;
    const node = this.#node;
    await node.write('stable', STABLE_MANIFESTS);
    for (let slot = 0; slot < slots; slot++) await node.write(`slot-${slot}`, randomSlot(slot, this.#draw));
    await node.start(programs.faulty);
    await this.#traffic.start();
    say(`running for ${seconds} s, seed ${seed}`);
    const churning = this.#churn();
    await this.#disturb(performance.now() + seconds * 1000);
    this.#isOver = true;
    await churning;

    say('calming down');
    node.calm();
    await this.#settle();
    const traffic = await this.#traffic.stop();
    say('sending packets to every service');
    const { rows, wrong } = await this.#rightPackets();
    say('comparing the rules with fresh ones');
    const stray = await strayLines(node, mode, programs.plain);
    return {
      mode: mode.name,
      hasBackstop: mode.hasBackstop,
      seconds,
      seed,
      changes: this.#changes,
      starts: this.#starts,
      tamperings: this.#tamperings,
      said: node.counts,
      traffic,
      packetRows: rows,
      wrongPackets: wrong,
      strayLines: stray,
    };
  }

  async #churn(): Promise<void> {
    const { slots } = this.#options;
    while (!this.#isOver) {
      for (let count = 1 + this.#draw(3); count > 0; count--) {
        const slot = this.#draw(slots);
        await this.#node.write(`slot-${slot}`, randomSlot(slot, this.#draw));
        this.#changes++;
      }
      await sleep(20 + this.#draw(150));
    }
  }

  async #disturb(until: number): Promise<void> {
    const { seconds, say } = this.#options;
    let told = performance.now();
    while (performance.now() < until) {
      await sleep(100 + this.#draw(900));
      await this.#node.whole();
      const choice = this.#draw(7);
      if (choice < 2) await this.#restart();
      else await this.#tamper();
      if (performance.now() - told < 10_000) continue;
      told = performance.now();
      const left = Math.max(0, Math.round((until - told) / 1000));
      say(`${Math.round(seconds - left)} s: ${this.#changes} changes, ${this.#starts.killed} kills`);
    }
  }

  async #restart(): Promise<void> {
    const signal = this.#draw(5) === 0 ? 'SIGTERM' : 'SIGKILL';
    this.#starts[signal === 'SIGTERM' ? 'stopped' : 'killed']++;
    await this.#node.end(signal);
    await sleep(this.#draw(400));
    await this.#node.start(this.#options.programs.faulty);
  }

  async #tamper(): Promise<void> {
    const { tamperings } = this.#options.mode;
    const tampering = tamperings[this.#draw(tamperings.length)];
    if (!tampering) return;
    const { name, isHole } = tampering;
    this.#tamperings.set(name, (this.#tamperings.get(name) ?? 0) + 1);
    const { argv, stdin } = await tampering.command(this.#draw, this.#node.host);
    // What it is about may have gone meanwhile.
    const work = async (): Promise<void> =>
      void (await this.#node.host.exec(argv, stdin === undefined ? {} : { stdin }));
    if (!isHole) await work();
    else if (this.#draw(DEAD) > 0) await this.#traffic.hole('repaired', () => this.#repaired(work));
    else await this.#tamperWithTheDead(work);
  }

  /** That every service answers is not enough without a backstop: what is missing may matter to one endpoint only. */
  async #repaired(work: () => Promise<void>): Promise<void> {
    await work();
    if (!this.#options.mode.hasBackstop) await this.#node.whole();
  }

  /** Nobody is there to repair it, and the backstop went with the process. */
  async #tamperWithTheDead(work: () => Promise<void>): Promise<void> {
    this.#starts.killed++;
    await this.#node.end('SIGKILL');
    await this.#traffic.hole('unattended', async () => {
      await work();
      await this.#node.start(this.#options.programs.faulty);
    });
  }

  /**
   * Waits for them: a service port that was refused before faults came to an end has what it had before until the next sync,
   * and on a busy machine that takes longer than the log was silent.
   */
  async #rightPackets(): ReturnType<typeof wrongPackets> {
    const { lab, mode } = this.#options;
    const until = performance.now() + SETTLE_MS;
    for (;;) {
      const seen = await wrongPackets(lab, mode.mechanism, this.#node.manifests);
      if (seen.wrong.length === 0 || performance.now() > until) return seen;
      await sleep(1000);
    }
  }

  /** Until what comes last is served, and the log is silent. */
  async #settle(): Promise<void> {
    const pod = this.#options.lab.host('pod-b');
    const marker = { name: 'marker', ip: '10.96.0.9', ip6: 'fd00:96::9', pods: 'a' };
    await this.#node.write('marker', manifests([marker]));
    for (const address of [marker.ip, marker.ip6])
      await eventually(
        'the last change',
        async () => (await pod.request('tcp', address, 80, { timeoutMs: 200 })).outcome === 'answer',
        SETTLE_MS,
      );
    let log = '';
    await eventually(
      'silence',
      async () => {
        log = this.#node.log;
        await sleep(1500);
        return log === this.#node.log;
      },
      SETTLE_MS,
    );
  }
}
