/** A transaction of chains with their rules that is written while they are compiled, so that nobody has to keep them. */
import type { RulesChannel } from '../../../netlink/channel.ts';
import type { TablePlace } from '../../../netlink/nftables/message.ts';
import { RuleBatch } from '../../../netlink/nftables/ruleBatch.ts';
import type { ChainWrite } from '../rules/edit.ts';
import type { StepDraft } from '../rules/sender.ts';
import type { RuleEncoder } from './encodeRule.ts';
import type { RuleHandles } from './ruleHandles.ts';

interface DraftOptions {
  readonly channel: RulesChannel;
  readonly encoder: RuleEncoder;
  /** Of rules that are deleted one by one. */
  readonly handles: RuleHandles;
  /** Enough for most, so that the buffer need not grow. */
  readonly bytes: number;
}

const AT_END = { place: 'end', isEchoed: false } as const;

export class NetlinkDraft implements StepDraft {
  readonly #options: DraftOptions;
  readonly #batch: RuleBatch;
  chains = 0;
  rules = 0;

  constructor(place: TablePlace, options: DraftOptions) {
    this.#options = options;
    this.#batch = new RuleBatch(place, options.bytes);
  }

  add({ name, rules }: ChainWrite): boolean {
    const { encoder, handles } = this.#options;
    if (handles.knows(name)) return false;
    this.#batch.addChain(name);
    this.#batch.flushChain(name);
    for (const rule of rules) {
      const encoded = encoder.encode(rule, rule.counters);
      if (!encoded) return false;
      this.#batch.addRule(name, AT_END, encoded);
    }
    this.chains++;
    this.rules += rules.length;
    return true;
  }

  async commit(): Promise<number | undefined> {
    const bytes = this.#batch.length;
    const reply = await this.#options.channel.commit(this.#batch.finish());
    return reply.state === 'done' ? bytes : undefined;
  }
}
