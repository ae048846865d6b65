/** A real Prometheus in a host of the lab, with a configuration and a storage of its own. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Host } from '../../../lab/host.ts';
import { eventually } from '../../e2e/support/eventually.ts';
import { tryFetch } from '../../e2e/support/fetch.ts';

export interface Target {
  readonly address: string;
  readonly labels: Readonly<Record<string, string>>;
}

interface PrometheusOptions {
  readonly program: string;
  readonly targets: readonly Target[];
  readonly ruleFile: string;
}

export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: number;
}

interface RawAnswer {
  readonly error?: string;
  readonly data?: {
    readonly result: readonly {
      readonly metric: Readonly<Record<string, string>>;
      readonly value: readonly [number, string];
    }[];
  };
}

const ADDRESS = '127.0.0.1:9090';

/** Queries come on standard input, and each is asked by itself: to start a process for each would take longer. */
const ASK = `
const read = async () => { let text = ''; for await (const part of process.stdin) text += part; return JSON.parse(text); };
const ask = async (query) => {
  const body = new URLSearchParams({ query });
  return (await fetch('http://${ADDRESS}/api/v1/query', { method: 'POST', body })).json();
};
read().then(async (queries) => {
  const answers = [];
  for (const query of queries) answers.push(await ask(query));
  console.log(JSON.stringify(answers));
});
`;

export class Prometheus {
  readonly #host: Host;
  readonly #child: ChildProcess;
  readonly #folder: string;
  #log = '';

  static async start(host: Host, { program, targets, ruleFile }: PrometheusOptions): Promise<Prometheus> {
    const folder = await mkdtemp(join(tmpdir(), 'junction-prometheus-'));
    const config = {
      global: { scrape_interval: '2s', scrape_timeout: '2s', evaluation_interval: '2s' },
      rule_files: [ruleFile],
      scrape_configs: [
        {
          job_name: 'kube-proxy',
          // As our PodMonitor.
          honor_labels: true,
          static_configs: targets.map(({ address, labels }) => ({ targets: [address], labels })),
        },
      ],
    };
    const file = join(folder, 'prometheus.yml');
    await writeFile(file, stringify(config));
    const args = [
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${ADDRESS}`,
    ];
    const child = host.spawn([program, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
    const prometheus = new Prometheus(host, child, folder);
    await eventually(
      () => `Prometheus is ready; it said:\n${prometheus.#log}`,
      async () => {
        if (child.exitCode !== null) throw new Error(`Prometheus ended:\n${prometheus.#log}`);
        const answer = await tryFetch(host, `http://${ADDRESS}/-/ready`);
        return typeof answer !== 'string' && answer.status === 200;
      },
    );
    return prometheus;
  }

  private constructor(host: Host, child: ChildProcess, folder: string) {
    this.#host = host;
    this.#child = child;
    this.#folder = folder;
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#log += chunk.toString();
    });
  }

  /** What each query evaluates to now. A query that Prometheus refuses is an error. */
  async ask(queries: readonly string[]): Promise<readonly (readonly Sample[])[]> {
    const text = await this.#host.run([process.execPath, '-e', ASK], { stdin: JSON.stringify(queries) });
    const answers = JSON.parse(text) as readonly RawAnswer[];
    return answers.map(({ error, data }, index) => {
      if (error !== undefined || !data) throw new Error(`${queries[index]}: ${error ?? 'no answer'}`);
      return data.result.map(({ metric, value: [, value] }) => ({
        metric,
        value: Number(value.replace('Inf', 'Infinity')),
      }));
    });
  }

  /** One JSON document of its API. */
  async get(path: string): Promise<unknown> {
    const answer = await tryFetch(this.#host, `http://${ADDRESS}${path}`);
    if (typeof answer === 'string') throw new Error(`Prometheus: ${answer}`);
    return JSON.parse(answer.body) as unknown;
  }

  async close(): Promise<void> {
    if (this.#child.exitCode === null) {
      const ended = once(this.#child, 'exit');
      this.#child.kill('SIGTERM');
      await ended;
    }
    await rm(this.#folder, { recursive: true, force: true });
  }
}
