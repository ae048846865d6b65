/** One daemon in the network namespace of this process, from outside: cold, at rest, restarted, killed. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type Dialler, ProxyEnvironment } from '../nftables/environment.ts';
import { probeEndpoint } from '../nftables/messages.ts';
import { elapsedMs } from './daemonLog.ts';
import { Life } from './life.ts';
import type { BudgetRun, BudgetTask, Start } from './messages.ts';

const GENERATIONS = fileURLToPath(new URL('bench-budgets-generations.js', import.meta.url));
const REST_MS = 150;
const CHANGE_LIMIT_MS = 60_000;
/** Changes that follow a restart, and how far apart they are. */
const EARLY_CHANGES = 20;
const EARLY_REST_MS = 100;
/** A restart that finds nothing changed looks at nothing. */
const LOOK_LIMIT_MS = 30_000;

class Measurement {
  readonly #task: BudgetTask;
  readonly #environment: ProxyEnvironment;
  #endpoint = 0;
  #life: Life | undefined;

  constructor(task: BudgetTask, environment: ProxyEnvironment) {
    this.#task = task;
    this.#environment = environment;
  }

  async all(): Promise<BudgetRun> {
    const first = this.#begin();
    const cold = await this.#started(first);
    const coldMemory = await first.within(first.settled());
    const { changeMs, changeSyncMs } = await first.within(this.#changes(first));
    await first.end('SIGTERM');

    await this.#next();
    addOthersTable('first');
    const second = this.#begin();
    const dialler = this.#environment.dial();
    const restart = await second.within(second.started(dialler, probeEndpoint(this.#endpoint)));
    const restartChangeMs = await second.within(this.#dialledChanges(dialler));
    dialler.end();
    const busyVerifyMs = await second.within(verificationMs(second));
    const restartMemory = await second.within(second.settled());
    await second.end('SIGKILL');

    await this.#next();
    const third = this.#begin();
    const killed = await this.#started(third);
    await third.end('SIGTERM');

    addOthersTable('second');
    const fourth = this.#begin();
    await this.#started(fourth);
    const verifyMs = await fourth.within(verificationMs(fourth));
    await fourth.end('SIGTERM');
    return {
      cold,
      coldMemory,
      changeMs,
      changeSyncMs,
      restart,
      restartChangeMs,
      busyVerifyMs,
      restartMemory,
      killed,
      verifyMs,
    };
  }

  /** Where a measurement has failed. */
  async close(): Promise<void> {
    await this.#life?.end('SIGKILL');
  }

  #begin(): Life {
    this.#life = new Life(this.#task, this.#environment);
    return this.#life;
  }

  async #started(life: Life): Promise<Start> {
    const dialler = this.#environment.dial();
    try {
      return await life.within(life.started(dialler, probeEndpoint(this.#endpoint)));
    } finally {
      dialler.end();
    }
  }

  #next(): ReturnType<ProxyEnvironment['replace']> {
    return this.#environment.replace(probeEndpoint(++this.#endpoint));
  }

  async #changes(life: Life): Promise<Pick<BudgetRun, 'changeMs' | 'changeSyncMs'>> {
    const watcher = spawn(process.execPath, [GENERATIONS], { stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      const times: number[] = [];
      const lines = createInterface({ input: watcher.stdout });
      await once(lines, 'line');
      lines.on('line', (line) => times.push(Number(line)));
      const changeMs: number[] = [];
      const before = life.log.all('SyncProxyRules complete', 'IPv4').length;
      for (let change = 0; change < this.#task.changes; change++) {
        const { monotonicMs: written } = await this.#next();
        changeMs.push((await generationAfter(times, written)) - written);
        await sleep(REST_MS);
      }
      const syncs = life.log.all('SyncProxyRules complete', 'IPv4').slice(before);
      return { changeMs, changeSyncMs: syncs.map(elapsedMs) };
    } finally {
      watcher.kill();
    }
  }

  async #dialledChanges(dialler: Dialler): Promise<readonly number[]> {
    const all: number[] = [];
    for (let change = 0; change < EARLY_CHANGES; change++) {
      const { at } = await this.#next();
      all.push((await dialler.reached(probeEndpoint(this.#endpoint))).at - at);
      await sleep(EARLY_REST_MS);
    }
    return all;
  }
}

async function generationAfter(times: readonly number[], written: number): Promise<number> {
  for (const end = Date.now() + CHANGE_LIMIT_MS; Date.now() < end; await sleep(5)) {
    const found = times.find((at) => at > written);
    if (found !== undefined) return found;
  }
  throw new Error('a change does not come to the kernel');
}

/** So that a new process has reason to look. */
function addOthersTable(name: string): void {
  execFileSync('nft', ['add', 'table', 'ip', `of-another-program-${name}`]);
}

/** Whichever comes first: a look beside the syncs, or a sync that reads everything back. */
async function verificationMs(life: Life): Promise<number> {
  const line = await life.log.first(
    ({ message, fields }) =>
      fields['ipFamily'] === 'IPv4' &&
      (message === 'Compared what is in the kernel' ||
        (message === 'SyncProxyRules complete' && fields['fullSync'] === 'true')),
    LOOK_LIMIT_MS,
  );
  return line ? elapsedMs(line) : Number.NaN;
}

async function main(task: BudgetTask): Promise<BudgetRun> {
  const environment = await ProxyEnvironment.open(task.sizes);
  const measurement = new Measurement(task, environment);
  try {
    return await measurement.all();
  } finally {
    await measurement.close();
    environment.close();
  }
}

process.stdout.write(`${JSON.stringify(await main(JSON.parse(process.argv[2] ?? '{}') as BudgetTask))}\n`);
process.exit();
