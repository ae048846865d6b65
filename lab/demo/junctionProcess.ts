/** Junction itself, the real program, in node1's network. */
import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Host } from '../host.ts';
import { FAMILIES } from '../../src/model/ip.ts';
import type { DemoMode } from './options.ts';

/** A line of its log. */
export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** It takes a second, and half a minute in a guest on a machine that has much else to do. */
const READY_LIMIT_MS = 180_000;
const GRACE_MS = 10_000;
const KEPT_LINES = 20;
/** Lines of which the first of each family is kept. */
const KEPT: ReadonlySet<string> = new Set(['Using iptables', 'Synced rules', 'Serving']);

export class JunctionProcess {
  readonly #child: ChildProcess;
  readonly #lines: string[] = [];
  readonly #log: LogLine[] = [];
  readonly #listeners = new Set<(line: LogLine) => void>();
  readonly exited: Promise<void>;

  constructor(host: Host, command: readonly string[]) {
    // In a session of its own: Ctrl-C is for the demo, which ends Junction with the rest.
    this.#child = host.spawn(command, {
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true,
    });
    this.exited = new Promise((resolve) => {
      this.#child.once('exit', () => resolve());
      this.#child.once('error', () => resolve());
    });
    if (this.#child.stderr) createInterface(this.#child.stderr).on('line', (line) => this.#receive(line));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Lines that are still to come. */
  onLine(listener: (line: LogLine) => void): void {
    this.#listeners.add(listener);
  }

  /** Resolves when both families are served. */
  async ready(): Promise<void> {
    const serving = new Promise<void>((resolve) => {
      const check = (): void => {
        if (FAMILIES.every((family) => this.#find('Serving', family))) resolve();
      };
      this.onLine(check);
      check();
    });
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(this.failure('does not serve')), READY_LIMIT_MS);
    });
    const died = this.exited.then(() => {
      throw this.failure('has ended');
    });
    died.catch(() => {}); // it may end later, when nobody waits here any more
    await Promise.race([serving, died, tooLate]).finally(() => clearTimeout(timer));
  }

  /** With SIGTERM; with SIGKILL where that does not end it. */
  async end(): Promise<void> {
    this.#child.kill('SIGTERM');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), GRACE_MS);
    await this.exited;
    clearTimeout(timer);
  }

  /** With the last that it said. */
  failure(what: string): Error {
    return new Error(
      `Junction ${what}. Its last lines:\n${this.#lines.map((line) => `  ${line}`).join('\n')}`,
    );
  }

  /** `iptables-nft-save` and the like, as far as Junction said which it uses. */
  get variant(): string | undefined {
    const variant = this.#find('Using iptables', 'IPv4')?.['variant'];
    return typeof variant === 'string' ? variant : undefined;
  }

  /** The first write of each family. */
  get firstWrites(): readonly LogLine[] {
    return FAMILIES.flatMap((family) => this.#find('Synced rules', family) ?? []);
  }

  /** What the mode counts as rules is called by its own name. */
  summary(mode: DemoMode): string {
    const noun = mode === 'nftables' ? 'element' : 'rule';
    const parts = FAMILIES.map((family) => {
      const line = this.#find('Serving', family);
      return `${family}: ${countOf(line?.['servicePorts'], 'service port')}, ${countOf(line?.['objectsWritten'], noun)}`;
    });
    return parts.join('; ');
  }

  #find(msg: string, family: string): LogLine | undefined {
    return this.#log.find((line) => line.msg === msg && line['ipFamily'] === family);
  }

  #receive(text: string): void {
    this.#lines.push(text);
    if (this.#lines.length > KEPT_LINES) this.#lines.shift();
    const line = parseLine(text);
    if (!line) return;
    if (KEPT.has(line.msg) && !this.#find(line.msg, String(line['ipFamily']))) this.#log.push(line);
    for (const listener of this.#listeners) listener(line);
  }
}

export function countOf(value: unknown, noun: string): string {
  return `${String(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** What a crash prints is not JSON. */
function parseLine(text: string): LogLine | undefined {
  try {
    const line: unknown = JSON.parse(text);
    return typeof line === 'object' && line !== null && 'msg' in line && 'level' in line
      ? (line as LogLine)
      : undefined;
  } catch {
    return undefined;
  }
}
