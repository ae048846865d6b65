/** Families that could not be served at the start: probed again now and then, until they can. */
import type { Log } from '../log/log.ts';
import { type Family, familyOf, parseIp } from '../model/ip.ts';
import type { FamilyAnswer, FamilySupport, NotServed } from '../modes/mode.ts';
import type { Node } from '../model/objects.ts';

interface LeftOutOptions {
  /** All of them; those that work are left alone. */
  readonly families: readonly Pick<FamilySupport, 'family' | 'answer'>[];
  readonly ask: (family: Family) => Promise<FamilyAnswer>;
  /** It can be served now. */
  readonly onServed: (family: Family) => void;
  /** It still cannot; why may have changed. */
  readonly onAnswer: (family: Family, answer: NotServed) => void;
  readonly log: Log;
}

/** A question costs one program that runs for a few milliseconds. */
const INTERVAL_MS = 30_000;

export class LeftOutFamilies {
  readonly #options: LeftOutOptions;
  readonly #answers = new Map<Family, NotServed>();
  #timer: NodeJS.Timeout | undefined;
  #asking: Promise<void> = Promise.resolve();

  constructor(options: LeftOutOptions) {
    this.#options = options;
    for (const { family, answer } of options.families) {
      if (answer.state === 'works') continue;
      this.#answers.set(family, answer);
      options.onAnswer(family, answer);
    }
  }

  /** Why it is not served; `undefined`: it is. */
  get(family: Family): NotServed | undefined {
    return this.#answers.get(family);
  }

  start(): void {
    if (this.#answers.size === 0) return;
    this.#timer = setTimeout(() => {
      this.#asking = this.#askAll().then(() => this.start());
    }, INTERVAL_MS);
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    this.#answers.clear();
    await this.#asking;
  }

  async #askAll(): Promise<void> {
    const { ask, log } = this.#options;
    for (const family of this.#answers.keys()) {
      const answer = await ask(family).catch((err: unknown) =>
        log.error('Could not check whether a family can be served; retrying', { ipFamily: family, err }),
      );
      if (answer && this.#answers.has(family)) this.#note(family, answer);
    }
  }

  #note(family: Family, answer: FamilyAnswer): void {
    const { log, onServed, onAnswer } = this.#options;
    if (answer.state === 'works') {
      this.#answers.delete(family);
      log.info('This family can be served now', { ipFamily: family });
      onServed(family);
      return;
    }
    const { reason, remedy } = answer;
    if (this.#answers.get(family)?.reason !== reason)
      log.warn('This family is still left out', { ipFamily: family, reason, whatToDo: remedy });
    this.#answers.set(family, answer);
    onAnswer(family, answer);
  }
}

/** As in kube-proxy: of a bind address that is one machine's, else of the node's first address, else IPv4. */
export function primaryFamily(bindAddress: string, node: Pick<Node, 'ips'> | undefined): Family {
  const bound = parseIp(bindAddress);
  if (bound !== undefined && bound !== '0.0.0.0' && bound !== '::') return familyOf(bound);
  const [first] = node?.ips ?? [];
  return first === undefined ? 'IPv4' : familyOf(first);
}
