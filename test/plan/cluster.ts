/** A small cluster whose services and slices are lines of text, and the plan that one node makes of it. */
import { type EndpointsByPort, EndpointTracker } from '../../src/model/endpointTracker.ts';
import type { Family } from '../../src/model/ip.ts';
import { type EndpointSlice, type ObjectKey, objectKey, type Service } from '../../src/model/objects.ts';
import { type ServicePortId, ServiceTracker } from '../../src/model/serviceTracker.ts';
import { Planner } from '../../src/plan/planner.ts';
import type { NodeView, PlanChange } from '../../src/plan/types.ts';
import { applyAll, keyOf, service, slice, VIEW } from './given.ts';

export class Cluster {
  readonly #services: ServiceTracker;
  readonly #slices: EndpointTracker;
  readonly planner: Planner;
  /** Services whose endpoints the planner asked for, in order. */
  readonly asked: ObjectKey[] = [];
  readonly #dirty = new Set<ServicePortId>();

  constructor(view: NodeView = VIEW, family: Family = 'IPv4') {
    this.#services = new ServiceTracker(family);
    this.#slices = new EndpointTracker(family, view.nodeName);
    this.planner = new Planner(family, view, {
      portsOf: (key) => this.#services.portsOf(key),
      endpointsOf: (key, limits): EndpointsByPort => {
        this.asked.push(key);
        return this.#slices.endpointsOf(key, limits);
      },
    });
  }

  /** Lines of services and slices; `- ns/name` deletes either. */
  tell(...lines: readonly string[]): this {
    for (const line of lines.flatMap((text) => text.split('\n')).map((text) => text.trim())) {
      if (line === '' || line.startsWith('#')) continue;
      if (line.startsWith('- ')) this.#delete(line.slice(2));
      else if (/^\S+\s+of\s/.test(line)) {
        this.setSlice(slice(line));
      } else {
        this.setService(service(line));
      }
    }
    return this;
  }

  setService(given: Service): void {
    this.#services.update(keyOf(given), given);
  }

  setSlice(given: EndpointSlice): void {
    this.#slices.update(objectKey(given.namespace, given.name), given);
  }

  #delete(path: string): void {
    this.#services.update(path, undefined);
    this.#slices.update(path, undefined);
  }

  /** Applies what was told; answers the plan's changes. */
  replan(): readonly PlanChange[] {
    this.asked.length = 0;
    const dirty = new Set([...this.#services.apply().keys(), ...applyAll(this.#slices)]);
    const changes = this.planner.update(dirty);
    for (const { id } of changes) this.#dirty.add(id);
    return changes;
  }

  setView(view: NodeView): void {
    for (const { id } of this.planner.update(this.planner.changeView(view))) this.#dirty.add(id);
  }

  /** Service ports that changed since the last time this was asked. */
  takeDirty(): readonly ServicePortId[] {
    this.replan();
    const ids = [...this.#dirty];
    this.#dirty.clear();
    return ids;
  }
}

export function cluster(...lines: readonly string[]): Cluster {
  const made = new Cluster();
  made.tell(...lines).replan();
  return made;
}
