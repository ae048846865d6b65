/** Where Services, EndpointSlices and Nodes come from. Every source looks like this. */
import type { EndpointSlice, Node, ObjectKey, Service } from '../model/objects.ts';
import { printableLine } from '../text/printable.ts';

/** What a source emits. Only differences: an object that did not change is not emitted again. */
export interface SourceEvents {
  /** `undefined`: it was deleted. */
  service(key: ObjectKey, current: Service | undefined): void;
  endpointSlice(key: ObjectKey, current: EndpointSlice | undefined): void;
  node(name: string, current: Node | undefined): void;
  /** The first full snapshot of every kind has been emitted. Called once. */
  synced(): void;
  /** Something for the operator to read. Reported once, when it appears. */
  report(problem: SourceProblem): void;
  /** More was received, perhaps without a difference. */
  received?(): void;
}

export interface Source {
  /** Resolves when watching has begun; `synced` may come later. Rejects when there is nothing to watch. */
  start(events: SourceEvents): Promise<void>;
  /** No event comes after this resolves. */
  stop(): Promise<void>;
  /** Looks once more. Resolves when everything that had arrived is emitted. */
  refresh?(): Promise<void>;
  /** Lists that are being received, a sentence each. */
  receiving?(): readonly string[];
  /** What a Service is lacking that should be known, of this version or a newer one where it has versions; `undefined`: nothing. */
  missing?(service: ObjectKey, resourceVersion: string | undefined): string | undefined;
}

export interface SourceProblem {
  /** error: something that was given is not in force as it was given. warning: a part was left out. */
  readonly severity: 'error' | 'warning';
  /** `file:line`, or as much of it as is known. */
  readonly where: string;
  /** `Service shop/web` */
  readonly object?: string;
  /** `status.loadBalancer.ingress[0].ip`, where the source knows it. */
  readonly field?: string;
  readonly message: string;
  readonly expected?: string;
}

/** `shop.yaml:7: error: Service shop/web: spec.ports[0].port 70000 is out of range (expected …)` */
export function printSourceProblem({ severity, where, object, message, expected }: SourceProblem): string {
  const subject = object === undefined ? '' : `${object}: `;
  const wanted = expected === undefined ? '' : ` (expected ${expected})`;
  return printableLine(`${where}: ${severity}: ${subject}${message}${wanted}`);
}
