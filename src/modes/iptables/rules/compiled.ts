/** Fragments of all service ports, one by one: what is compiled is sent and forgotten before the next one is. */
import type { ServicePortId } from '../../../model/servicePort.ts';
import type { Plan, ServicePortPlan } from '../../../plan/types.ts';
import type { CompileOptions, Fragment, Layout } from './fragment.ts';
import type { Table } from './rule.ts';
import { addFragment } from './ruleCounts.ts';

/** What a service port was last written as. */
export interface Applied {
  readonly plan: ServicePortPlan;
  readonly endpointComments: boolean;
}

/** A service port as the plan has it is what was written. */
export function remember(
  applied: Map<ServicePortId, Applied>,
  plan: Plan,
  id: ServicePortId,
  { endpointComments }: CompileOptions,
): void {
  const port = plan.servicePorts.get(id);
  if (port) applied.set(id, { plan: port, endpointComments });
  else applied.delete(id);
}

/** As they were last written. */
export function* appliedFragments(
  layout: Layout,
  applied: ReadonlyMap<ServicePortId, Applied>,
  options: CompileOptions,
): Generator<readonly [ServicePortId, Fragment]> {
  for (const [id, { plan, endpointComments }] of applied)
    yield [id, layout.servicePort(plan, { ...options, endpointComments })];
}

export function* compileAll(
  layout: Layout,
  plan: Plan,
  options: CompileOptions,
): Generator<readonly [ServicePortId, Fragment]> {
  for (const [id, port] of plan.servicePorts) yield [id, layout.servicePort(port, options)];
}

/** Counts what passes. */
export function* counted(
  fragments: Iterable<readonly [ServicePortId, Fragment]>,
  owned: Record<Table, number>,
): Generator<readonly [ServicePortId, Fragment]> {
  for (const each of fragments) {
    addFragment(owned, each[1], 1);
    yield each;
  }
}
