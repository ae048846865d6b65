/** The whole proxy: hands events to the families that they concern, and keeps each family's runner turning. */
import type { Family } from '../model/ip.ts';
import type { EndpointSlice, Node, ObjectKey, Service } from '../model/objects.ts';
import { printSourceProblem, type SourceEvents, type SourceProblem } from '../sources/source.ts';
import type { Log } from '../log/log.ts';
import type { SyncRunner } from './syncRunner.ts';
import type { Proxier } from './proxier.ts';

interface DualStackProxierOptions {
  readonly nodeName: string;
  readonly runners: readonly SyncRunner[];
  readonly log: Log;
  /** Called after it is logged. */
  readonly onProblem?: (problem: SourceProblem) => void;
}

export class DualStackProxier implements SourceEvents {
  readonly #nodeName: string;
  readonly #runners: readonly SyncRunner[];
  readonly #log: Log;
  readonly #onProblem: (problem: SourceProblem) => void;

  constructor({ nodeName, runners, log, onProblem }: DualStackProxierOptions) {
    this.#onProblem = onProblem ?? ((): void => {});
    this.#nodeName = nodeName;
    this.#runners = runners;
    this.#log = log;
  }

  start(): void {
    for (const runner of this.#runners) runner.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#runners.map((runner) => runner.stop()));
  }

  family(family: Family): Proxier | undefined {
    return this.#runners.find((runner) => runner.proxier.family === family)?.proxier;
  }

  service(key: ObjectKey, current: Service | undefined): void {
    this.#each((proxier) => proxier.onService(key, current));
  }

  endpointSlice(key: ObjectKey, current: EndpointSlice | undefined): void {
    this.#each((proxier) => proxier.onEndpointSlice(key, current));
  }

  node(name: string, current: Node | undefined): void {
    if (name === this.#nodeName) this.#each((proxier) => proxier.onNode(current));
  }

  synced(): void {
    for (const runner of this.#runners) {
      runner.proxier.onSynced();
      runner.request();
    }
  }

  report(problem: SourceProblem): void {
    const line = printSourceProblem(problem);
    if (problem.severity === 'error') this.#log.error(line);
    else this.#log.warn(line);
    this.#onProblem(problem);
  }

  #each(notify: (proxier: Proxier) => boolean): void {
    for (const runner of this.#runners) {
      if (notify(runner.proxier)) runner.request();
    }
  }
}
