/** Where Services, EndpointSlices and Nodes come from. Every source looks like this. */
import { printableLine } from '../text/printable.ts';
import type { EndpointSlice, Node, ObjectKey, Service } from '../model/objects.ts';

/** What a source tells. Only differences: an object that did not change is not told again. */
export interface SourceEvents {
  /** `undefined`: it is gone. */
  service(key: ObjectKey, current: Service | undefined): void;
  endpointSlice(namespace: string, name: string, current: EndpointSlice | undefined): void;
  node(name: string, current: Node | undefined): void;
  /** The first full picture of every kind has been told. Called once. */
  synced(): void;
  /** Something for the operator to read. Told once, when it appears. */
  report(problem: SourceProblem): void;
}

export interface Source {
  /** Resolves when watching has begun; `synced` may come later. Rejects when there is nothing to watch. */
  start(events: SourceEvents): Promise<void>;
  /** No event comes after this resolves. */
  stop(): Promise<void>;
}

export interface SourceProblem {
  /** error: something that was given is not in force as it was given. warning: a part was left out. */
  readonly severity: 'error' | 'warning';
  /** `file:line:column`, or as much of it as is known. */
  readonly where: string;
  /** `Service shop/web` */
  readonly object?: string;
  /** `status.loadBalancer.ingress[0].ip`, where the source knows it. */
  readonly field?: string;
  readonly message: string;
  readonly expected?: string;
}

/** `shop.yaml:7:11: error: Service shop/web: spec.ports[0].port 70000 is out of range (expected …)` */
export function printSourceProblem({ severity, where, object, message, expected }: SourceProblem): string {
  const subject = object === undefined ? '' : `${object}: `;
  const wanted = expected === undefined ? '' : ` (expected ${expected})`;
  return printableLine(`${where}: ${severity}: ${subject}${message}${wanted}`);
}
