/** Runs a walk on this machine: in slices, and with the routes that it has now. */
import type { Ip } from '../model/ip.ts';
import { NLM_F_DUMP } from '../netlink/codec.ts';
import { decodeLink, decodeRoute, getLinks, getRoute, type Link } from '../netlink/rtnetlink.ts';
import { NETLINK_ROUTE } from '../netlink/socket.ts';
import { type NetlinkRequest, requestOnce } from '../netlink/request.ts';
import { systemClock } from '../time/systemClock.ts';
import { TimeSlice } from '../time/timeSlice.ts';
import type { Steps } from './kernelRules.ts';

/** By which interface the kernel would send a packet; rules that route by a mark are not asked. `undefined`: there is no route, or it is not known. */
export type OutInterface = (packet: { readonly source: Ip; readonly destination: Ip }) => string | undefined;

/** `inInterface`: unset where this node sends it. Links, and each route, are read once. */
export function outInterfaceNow(inInterface: string | undefined): OutInterface {
  let links: readonly Link[] | undefined;
  const known = new Map<string, string | undefined>();
  return ({ source, destination }) => {
    links ??= answered({ ...getLinks(), flags: NLM_F_DUMP }).map(decodeLink);
    const inLink = links.find(({ name }) => name === inInterface)?.index;
    if (inInterface !== undefined && inLink === undefined) return undefined;
    const key = `${source} ${destination}`;
    if (!known.has(key)) {
      const arrival = inLink === undefined ? undefined : { source, inLink };
      const [route] = answered(getRoute(destination, arrival)).map(decodeRoute);
      known.set(key, links.find(({ index }) => index === route?.outLink)?.name);
    }
    return known.get(key);
  };
}

/** On a socket of its own, at once: a walk cannot wait. */
function answered(request: NetlinkRequest): readonly Uint8Array[] {
  const reply = requestOnce(NETLINK_ROUTE, request);
  return typeof reply === 'string' || reply.kind !== 'answered'
    ? []
    : reply.messages.map(({ payload }) => payload);
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
