/**
 * Clients that are remembered for an endpoint to which they may not go any more must be forgotten: the map would go on
 * sending them there. It is asked about after the new pools are in the kernel, so that nobody is noted down meanwhile;
 * and only where a service with affinity lost something, or where it is not known what was before.
 */
import { type Ip, hostPort } from '../../../model/ip.ts';
import type { Protocol } from '../../../model/objects.ts';
import { classifySource } from '../../../plan/decide.ts';
import { frontendAt } from '../../../plan/frontends.ts';
import type { Plan, Pool, Route, ServicePortPlan, SourceClass } from '../../../plan/types.ts';
import { forEachSliced, type TimeSlice } from '../../../time/timeSlice.ts';
import { affinityMap } from './names.ts';
import type { TableSet } from './rule.ts';
import { elementOperations, type NftClient, type Remembered } from './transaction.ts';

/** A client that goes by itself in the meantime makes the kernel refuse to forget the others. */
const TRIES = 5;
const CLASSES: readonly SourceClass[] = ['pod', 'node', 'outside'];

export interface ForgetOptions {
  readonly door: NftClient;
  readonly plan: Plan;
  /** All addresses of this node. */
  readonly nodeIps: readonly Ip[];
  readonly sets: ReadonlyMap<string, TableSet>;
  /** How many elements one transaction should have. */
  readonly chunk: number;
  readonly timeSlice?: TimeSlice | undefined;
}

/** By protocol: whether a client may have been sent where it may not be sent now. */
export function losers(before: Iterable<ServicePortPlan>, plan: Plan): ReadonlySet<Protocol> {
  const found = new Set<Protocol>();
  for (const port of before) {
    if (port.affinitySeconds === undefined || found.has(port.protocol)) continue;
    if (lost(port, plan.servicePorts.get(port.id))) found.add(port.protocol);
  }
  return found;
}

export interface Forgetting {
  readonly isDone: boolean;
  readonly transactions: number;
}

export async function forgetStale(
  protocols: Iterable<Protocol>,
  options: ForgetOptions,
): Promise<Forgetting> {
  let isDone = true;
  let transactions = 0;
  for (const protocol of protocols) {
    if (!options.sets.has(affinityMap(protocol))) continue;
    let outcome: 'done' | 'refused' = 'refused';
    for (let tries = 0; tries < TRIES && outcome === 'refused'; tries++) {
      const stale = await staleEntries(protocol, options);
      transactions += Math.ceil(stale.length / options.chunk);
      outcome = await forget(protocol, stale, options);
    }
    isDone &&= outcome === 'done';
  }
  return { isDone, transactions };
}

/** There may be a million entries: they are judged in time slices. */
async function staleEntries(protocol: Protocol, options: ForgetOptions): Promise<readonly Remembered[]> {
  const stale: Remembered[] = [];
  await forEachSliced(
    await options.door.remembered(protocol),
    (each) => {
      if (!mayGoOn(protocol, each, options)) stale.push(each);
    },
    options.timeSlice,
  );
  return stale;
}

async function forget(
  protocol: Protocol,
  stale: readonly Remembered[],
  { door, sets, chunk }: ForgetOptions,
): Promise<'done' | 'refused'> {
  const set = affinityMap(protocol);
  for (let start = 0; start < stale.length; start += chunk) {
    const elements = stale.slice(start, start + chunk).map(({ client, destination, port }) => ({
      set,
      key: { address: client, secondAddress: destination, port },
    }));
    const { state } = await door.commit(elementOperations('deleteElements', elements, sets));
    if (state === 'refused') return state;
  }
  return 'done';
}

/** Whether a client that was sent somewhere may not be sent there again. */
function lost(before: ServicePortPlan, now: ServicePortPlan | undefined): boolean {
  if (now?.affinitySeconds === undefined) return true;
  // Frontends are many and share a few routes.
  const known = new Map<Route, Map<Route, boolean>>();
  return before.frontends.some((frontend) => {
    const same = frontendAt(now, frontend.address, frontend.port);
    return (
      !same || CLASSES.some((from) => lostFrom(before, frontend.routes[from], now, same.routes[from], known))
    );
  });
}

function lostFrom(
  before: ServicePortPlan,
  oldRoute: Route,
  now: ServicePortPlan,
  newRoute: Route,
  known: Map<Route, Map<Route, boolean>>,
): boolean {
  let answers = known.get(oldRoute);
  if (!answers) known.set(oldRoute, (answers = new Map<Route, boolean>()));
  let isLost = answers.get(newRoute);
  if (isLost === undefined) {
    const [old, left] = [endpointsOf(before, oldRoute), endpointsOf(now, newRoute)];
    answers.set(newRoute, (isLost = [...old].some((key) => !left.has(key))));
  }
  return isLost;
}

function mayGoOn(
  protocol: Protocol,
  { client, destination, port, endpoint }: Remembered,
  { plan, nodeIps }: ForgetOptions,
): boolean {
  // A node port answers on several addresses.
  const found = plan.find(destination, protocol, port) ?? plan.find(undefined, protocol, port);
  if (found?.servicePort.affinitySeconds === undefined) return false;
  const { servicePort, frontend } = found;
  const packet = { source: client, destination, protocol, port, inInterface: undefined };
  const from = classifySource(plan.view.localDetector, packet, { addresses: nodeIps });
  const key = hostPort(endpoint.ip, endpoint.port);
  return possibleClasses(plan, from).some((each) => endpointsOf(servicePort, frontend.routes[each]).has(key));
}

/** Where pods are told by where they come in, which is not remembered, who is not the node itself may be one. */
function possibleClasses({ view }: Plan, from: SourceClass): readonly SourceClass[] {
  const isByInterface =
    view.localDetector.kind === 'interface' || view.localDetector.kind === 'interfacePrefix';
  return isByInterface && from === 'outside' ? ['pod', 'outside'] : [from];
}

/** Made once for each pool: every remembered client asks for one. */
const keysOfPool = new WeakMap<Pool, ReadonlySet<string>>();
const NOBODY: ReadonlySet<string> = new Set();

function endpointsOf({ pools }: ServicePortPlan, route: Route): ReadonlySet<string> {
  const pool = route.verdict === 'forward' ? pools[route.pool] : undefined;
  if (!pool) return NOBODY;
  let keys = keysOfPool.get(pool);
  if (!keys) keysOfPool.set(pool, (keys = new Set(pool.map(({ key }) => key))));
  return keys;
}
