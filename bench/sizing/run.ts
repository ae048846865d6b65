/** One mode and one cluster in the network namespace of this process: start, changes, questions, a repair, a restart. */
import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { FromServer, ServerOptions, ToServer } from './serverMessages.ts';
import { Container, Ended, writeFiles } from './container.ts';
import { MemoryGroup } from './memoryGroup.ts';
import type { RateCost, SizingMode, SizingRun, SizingTask, Step, StepName } from './messages.ts';

const SERVER = fileURLToPath(new URL('bench-sizing-server.js', import.meta.url));
const CERTIFICATES = fileURLToPath(new URL('../test/support/apiServer/certs', import.meta.url));
const SAMPLE_MS = 20;
/** In each mode, a way to lose everything. */
const DELETIONS: Readonly<Record<SizingMode, readonly (readonly [string, ...string[]])[]>> = {
  nftables: [['nft', 'flush', 'ruleset']],
  'iptables-nft': [['nft', 'flush', 'ruleset']],
  'iptables-legacy': [
    ['iptables-legacy', '-t', 'nat', '-F'],
    ['ip6tables-legacy', '-t', 'nat', '-F'],
  ],
  ipvs: [['ipvsadm', '--clear']],
};

class Measurement {
  readonly steps: Step[] = [];
  readonly rates: RateCost[] = [];
  readonly #task: SizingTask;
  readonly #pod: MemoryGroup;
  readonly #server: ChildProcess;
  #step: StepName = 'start';
  kernelAfterEnd: number | undefined;
  idleShare = Number.NaN;
  logBytes = { start: 0, later: 0 };

  constructor(task: SizingTask, pod: MemoryGroup, server: ChildProcess) {
    this.#task = task;
    this.#pod = pod;
    this.#server = server;
  }

  get step(): StepName {
    return this.#step;
  }

  async first(container: Container): Promise<void> {
    const { sizes, churnSeconds, rates, mode } = this.#task;
    await this.#measure('start', container, () => container.served(sizes.services, sizes.isDualStack));
    const start = container.logBytes;
    this.idleShare = await shareOf(container, () => sleep(churnSeconds * 1000));
    await this.#measure('changes', container, async () => {
      for (const rate of rates) this.rates.push(await this.#changesAt(rate, container));
    });
    await this.#measure('questions', container, async () => {
      await container.command('doctor');
      await container.command('explain', 'team-0/service-0');
    });
    await this.#measure('listing', container, () => container.command('services', '--output', 'json'));
    const since = Date.now();
    await this.#measure('repair', container, async () => {
      for (const [program, ...args] of DELETIONS[mode]) execFileSync(program, args);
      await container.repaired(since);
    });
    this.logBytes = { start, later: container.logBytes - start };
  }

  async second(container: Container): Promise<void> {
    const { sizes } = this.#task;
    await this.#measure('restart', container, () => container.served(sizes.services, sizes.isDualStack));
  }

  async #measure(name: StepName, container: Container, act: () => Promise<void>): Promise<void> {
    this.#step = name;
    let peak = 0;
    const sampler = setInterval(() => {
      const { charged, pageCache } = this.#pod.charge();
      peak = Math.max(peak, charged - pageCache);
    }, SAMPLE_MS);
    try {
      const begun = {
        at: performance.now(),
        cpu: name === 'start' || name === 'restart' ? 0 : container.cpuMs(),
      };
      await act();
      const ms = performance.now() - begun.at;
      const cpuMs = container.cpuMs() - begun.cpu;
      await sleep(this.#task.settleSeconds * 1000);
      this.steps.push({ name, ms, cpuMs, peak, settled: container.sample() });
    } finally {
      clearInterval(sampler);
    }
  }

  async #changesAt(rate: number, container: Container): Promise<RateCost> {
    let changes = 0;
    const share = await shareOf(container, async () => {
      const churned = told(this.#server, 'churned');
      const seconds = this.#task.churnSeconds;
      this.#server.send({ kind: 'churn', seconds, rate } satisfies ToServer);
      ({ changes } = await churned);
    });
    container.assertRuns();
    return { rate, changes, share };
  }
}

/** Of one core. */
async function shareOf(container: Container, act: () => Promise<void>): Promise<number> {
  const begun = { at: performance.now(), cpu: container.cpuMs() };
  await act();
  container.assertRuns();
  return (container.cpuMs() - begun.cpu) / (performance.now() - begun.at);
}

async function main(task: SizingTask): Promise<SizingRun> {
  const folder = mkdtempSync(join(tmpdir(), 'junction-bench-'));
  execFileSync('ip', ['link', 'set', 'lo', 'up']);
  const pod = MemoryGroup.openPod(`junction-bench-${process.pid}`, task.limit);
  const options: ServerOptions = { ...task.sizes, certificates: CERTIFICATES };
  const server = fork(SERVER, [JSON.stringify(options)], { execArgv: [] });
  const measurement = new Measurement(task, pod, server);
  let endedIn: SizingRun['endedIn'];
  const within = async (container: Container, act: () => Promise<void>): Promise<boolean> => {
    try {
      await act();
      return true;
    } catch (error) {
      if (!(error instanceof Ended)) throw error;
      endedIn = { step: measurement.step, how: error.message };
      return false;
    } finally {
      await container.end();
    }
  };
  try {
    const { port } = await told(server, 'listening');
    const files = writeFiles(folder, port, `${CERTIFICATES}/ca.crt`);
    const first = new Container('first', pod, files, task);
    if (await within(first, () => measurement.first(first))) {
      measurement.kernelAfterEnd = pod.charge().kernel;
      const second = new Container('second', pod, files, task);
      await within(second, () => measurement.second(second));
    }
    const { steps, rates, idleShare, logBytes, kernelAfterEnd } = measurement;
    const { killed: killedCommands } = first;
    return {
      steps,
      rates,
      idleShare,
      logBytes,
      kernelAfterEnd,
      endedIn,
      killedCommands,
      groupVersion: pod.version,
    };
  } finally {
    if (server.connected) server.disconnect();
    await pod.close();
    rmSync(folder, { recursive: true });
  }
}

function told<Kind extends FromServer['kind']>(
  server: ChildProcess,
  kind: Kind,
): Promise<Extract<FromServer, { readonly kind: Kind }>> {
  return new Promise((resolve, reject) => {
    server.once('exit', () => reject(new Error('the API server has ended')));
    server.on('message', (message: Extract<FromServer, { readonly kind: Kind }>) => {
      if (message.kind === kind) resolve(message);
    });
  });
}

const task = JSON.parse(process.argv[2] ?? '{}') as SizingTask;
process.stdout.write(`${JSON.stringify(await main(task))}\n`);
process.exit();
