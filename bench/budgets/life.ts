/** One life of a daemon: how it starts, what it says, how it ends. */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Dialler, ProxyEnvironment } from '../nftables/environment.ts';
import { ProxyProcess, writeConfig } from '../nftables/proxyProcess.ts';
import { DaemonLog, elapsedMs } from './daemonLog.ts';
import type { BudgetTask, Resident, Start } from './messages.ts';

const PATIENCE_MS = 900_000;
const LISTED: ReadonlySet<string> = new Set(['services', 'endpointslices']);

export class Life {
  readonly log = new DaemonLog();
  readonly #process: ProxyProcess;
  readonly #settleMs: number;
  /** Noted when all lists are read. */
  readonly #listed: Promise<Pick<Start, 'listedMs' | 'listedCpuMs'>>;

  constructor(task: BudgetTask, { folder, url }: ProxyEnvironment) {
    const [mode, variant] =
      task.mode === 'nftables' ? (['nftables'] as const) : (['iptables', 'nft'] as const);
    const { contentType } = task;
    const config = writeConfig(folder, url, { mode, minSyncPeriod: '1ms', contentType });
    const own = [`--api-socket=${join(folder, 'junction.sock')}`, '--v=2'];
    const variantFlag = variant === undefined ? [] : [`--iptables-variant=${variant}`];
    this.#process = new ProxyProcess(
      [process.execPath, task.program, 'run', ...own, ...variantFlag],
      config,
      {
        env: { ...process.env, NODE_OPTIONS: task.nodeOptions },
        onText: (text) => {
          this.log.add(text);
          if (task.logFile !== '') appendFileSync(task.logFile, text);
        },
      },
    );
    this.#settleMs = task.settleMs;
    this.#listed = this.#untilListed();
  }

  /** Fails when the daemon ends. */
  async within<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.#process.failed, tooLate()]);
  }

  async started(dialler: Dialler, endpoint: string): Promise<Start> {
    const { at } = await dialler.reached(endpoint);
    const forwardingCpuMs = this.#process.cpuMs();
    const listed = await this.#listed;
    const first = await this.log.first(
      ({ message, fields }) => message === 'SyncProxyRules complete' && fields['ipFamily'] === 'IPv4',
      PATIENCE_MS,
    );
    return {
      forwardingMs: at - this.#process.startedAt,
      forwardingCpuMs,
      ...listed,
      firstSyncMs: first ? elapsedMs(first) : Number.NaN,
    };
  }

  async settled(): Promise<Resident> {
    await sleep(this.#settleMs);
    return { settled: this.#process.resident(), peak: this.#process.peakResident() };
  }

  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    return this.#process.ended(signal);
  }

  async #untilListed(): Promise<Pick<Start, 'listedMs' | 'listedCpuMs'>> {
    const left = new Set(LISTED);
    let at = 0;
    while (left.size > 0) {
      const line = await this.log.first(
        ({ message, fields }) =>
          message === 'Caches are synced' && [...left].some((each) => fields['resource']?.endsWith(each)),
        PATIENCE_MS,
      );
      if (!line) return { listedMs: Number.NaN, listedCpuMs: Number.NaN };
      for (const each of left) if (line.fields['resource']?.endsWith(each)) left.delete(each);
      at = Math.max(at, line.at);
    }
    return { listedMs: at - this.#process.startedAt, listedCpuMs: this.#process.cpuMs() };
  }
}

async function tooLate(): Promise<never> {
  await sleep(PATIENCE_MS, undefined, { ref: false });
  throw new Error('the daemon takes too long');
}
