/** The whole proxy: hands events to the families that they concern, and keeps each family's loop turning. */
import type { Family } from '../model/ip.ts';
import type { EndpointSlice, Node, ObjectKey, Service } from '../model/objects.ts';
import { printSourceProblem, type SourceEvents, type SourceProblem } from '../sources/source.ts';
import type { Log } from '../log/log.ts';
import type { FamilyLoop } from './familyLoop.ts';
import type { FamilyProxy } from './familyProxy.ts';

export interface ProxyOptions {
  readonly nodeName: string;
  readonly loops: readonly FamilyLoop[];
  readonly log: Log;
  /** Told after it is logged. */
  readonly onProblem?: (problem: SourceProblem) => void;
}

export class Proxy implements SourceEvents {
  readonly #nodeName: string;
  readonly #loops: readonly FamilyLoop[];
  readonly #log: Log;
  readonly #onProblem: (problem: SourceProblem) => void;

  constructor({ nodeName, loops, log, onProblem }: ProxyOptions) {
    this.#onProblem = onProblem ?? ((): void => {});
    this.#nodeName = nodeName;
    this.#loops = loops;
    this.#log = log;
  }

  start(): void {
    for (const loop of this.#loops) loop.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#loops.map((loop) => loop.stop()));
  }

  family(family: Family): FamilyProxy | undefined {
    return this.#loops.find((loop) => loop.proxy.family === family)?.proxy;
  }

  service(key: ObjectKey, current: Service | undefined): void {
    this.#each((proxy) => proxy.onService(key, current));
  }

  endpointSlice(namespace: string, name: string, current: EndpointSlice | undefined): void {
    this.#each((proxy) => proxy.onEndpointSlice(namespace, name, current));
  }

  node(name: string, current: Node | undefined): void {
    if (name === this.#nodeName) this.#each((proxy) => proxy.onNode(current));
  }

  synced(): void {
    for (const loop of this.#loops) {
      loop.proxy.onSynced();
      loop.request();
    }
  }

  report(problem: SourceProblem): void {
    const line = printSourceProblem(problem);
    if (problem.severity === 'error') this.#log.error(line);
    else this.#log.warn(line);
    this.#onProblem(problem);
  }

  #each(tell: (proxy: FamilyProxy) => boolean): void {
    for (const loop of this.#loops) {
      if (tell(loop.proxy)) loop.request();
    }
  }
}
