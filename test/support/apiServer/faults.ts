/** What a test makes go wrong with the next requests. */
import type { StatusError } from './status.ts';

export type RequestKind = 'list' | 'watch' | 'stream' | 'other';

export type Fault =
  /** Answered with an error. */
  | { readonly kind: 'status'; readonly error: StatusError }
  /** Answered with this text, whatever it is. */
  | {
      readonly kind: 'answer';
      readonly code: number;
      readonly contentType: string;
      readonly body: string | Uint8Array;
    }
  /** The connection breaks before there is an answer. */
  | { readonly kind: 'reset' }
  /** There is never an answer. */
  | { readonly kind: 'hang' }
  /** The answer begins after so long. */
  | { readonly kind: 'late'; readonly ms: number }
  /** A list breaks off after this many bytes. `clean`: as if it had ended there. */
  | { readonly kind: 'cut'; readonly afterBytes: number; readonly clean: boolean }
  /** A list goes out in pieces of a few bytes. */
  | { readonly kind: 'slow'; readonly bytes: number }
  /** A watch is opened, and ended at once. */
  | { readonly kind: 'endAtOnce' }
  /** Called before the request is answered. */
  | { readonly kind: 'do'; readonly action: () => void };

export interface FaultRule {
  readonly on: RequestKind | 'any';
  /** `services`; all when not given. */
  readonly resource?: string | undefined;
  readonly fault: Fault;
  /** How many requests it hits; 1 when not given. */
  readonly times?: number | undefined;
  /** How many matching requests pass before. */
  readonly after?: number | undefined;
}

export class Faults {
  #rules: { rule: FaultRule; left: number; pass: number }[] = [];

  add(rule: FaultRule): void {
    this.#rules.push({ rule, left: rule.times ?? 1, pass: rule.after ?? 0 });
  }

  clear(): void {
    this.#rules = [];
  }

  take(kind: RequestKind, resource: string): Fault | undefined {
    for (const entry of this.#rules) {
      const { on, resource: wanted, fault } = entry.rule;
      if ((on !== 'any' && on !== kind) || (wanted !== undefined && wanted !== resource) || entry.left === 0)
        continue;
      if (entry.pass > 0) {
        entry.pass--;
        continue;
      }
      entry.left--;
      return fault;
    }
    return undefined;
  }
}
