/** Runs a walk on this machine: in slices, and with the routes that it has now. */
import type { Ip } from '../model/ip.ts';
import { NLM_F_DUMP } from '../netlink/codec.ts';
import { decodeLink, decodeRoute, getLinks, getRoute, type Link } from '../netlink/rtnetlink.ts';
import { NETLINK_ROUTE } from '../netlink/socket.ts';
import { payloadsNow } from '../netlink/request.ts';
import { systemClock } from '../time/systemClock.ts';
import { TimeSlice } from '../time/timeSlice.ts';
import type { Steps, WalkResult } from './kernelRules.ts';

/**
 * By which interface the kernel would send a packet; rules that route by a mark are not asked. `undefined`: there is no route, or it
 * is not known.
 */
export type OutInterface = (packet: { readonly source: Ip; readonly destination: Ip }) => string | undefined;

/** `inInterface`: unset where this node sends it. Links, and each route, are read once, at once: a walk cannot wait. */
export function outInterfaceNow(inInterface: string | undefined): OutInterface {
  let links: readonly Link[] | undefined;
  const known = new Map<string, string | undefined>();
  return ({ source, destination }) => {
    links ??= payloadsNow(NETLINK_ROUTE, { ...getLinks(), flags: NLM_F_DUMP }).map(decodeLink);
    const inLink = links.find(({ name }) => name === inInterface)?.index;
    if (inInterface !== undefined && inLink === undefined) return undefined;
    const key = `${source} ${destination}`;
    if (!known.has(key)) {
      const arrival = inLink === undefined ? undefined : { source, inLink };
      const [route] = payloadsNow(NETLINK_ROUTE, getRoute(destination, arrival)).map(decodeRoute);
      known.set(key, links.find(({ index }) => index === route?.outLink)?.name);
    }
    return known.get(key);
  };
}

/** A sync does not wait longer for a walk. */
const SLICE_MS = 2;
const STEPS_PER_LOOK = 16;

/** Runs a walk in slices, and awaits what it reads. */
export async function runSteps<T>(steps: Steps<T>): Promise<T> {
  const timeSlice = new TimeSlice(systemClock, SLICE_MS);
  for (let count = 1; ; count++) {
    const step = steps.next();
    if (step.done) return step.value;
    if (step.value) {
      await step.value;
      timeSlice.begin();
    } else if (count % STEPS_PER_LOOK === 0) await timeSlice.pause();
  }
}

/** Rules that change while they are walked are walked again, so often; then the walk is taken as it is. */
const MAX_WALKS = 3;

/** `generation`: another one after every change of the rules. */
export async function walkSteadily<Generation>(
  generation: () => Generation | Promise<Generation>,
  walk: (generation: Generation) => Promise<WalkResult>,
): Promise<WalkResult> {
  for (let walks = 1; ; walks++) {
    const before = await generation();
    const result = await walk(before);
    if ((await generation()) === before) return result;
    if (walks === MAX_WALKS)
      return { ...result, notes: ['rules changed while they were read', ...result.notes] };
  }
}
