/** Profiles of the running process, in the formats that Chrome's developer tools and speedscope.app open. */
import { Session } from 'node:inspector/promises';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { getHeapSnapshot } from 'node:v8';

export type SampledProfile = 'cpu' | 'allocations';

/** The JSON of a profile, or why there is none. */
export type ProfileResult =
  | { readonly kind: 'done'; readonly text: string }
  /** V8 has one profiler of each kind. */
  | { readonly kind: 'busy' }
  /** Nobody waits for it any more. */
  | { readonly kind: 'abandoned' };

interface Recorder {
  start(session: Session): Promise<void>;
  stop(session: Session): Promise<object>;
}

const RECORDERS: Readonly<Record<SampledProfile, Recorder>> = {
  cpu: {
    start: async (session) => {
      await session.post('Profiler.enable');
      await session.post('Profiler.start');
    },
    stop: async (session) => (await session.post('Profiler.stop')).profile,
  },
  allocations: {
    start: async (session) => {
      await session.post('HeapProfiler.enable');
      await session.post('HeapProfiler.startSampling');
    },
    stop: async (session) => (await session.post('HeapProfiler.stopSampling')).profile,
  },
};

const running = new Set<SampledProfile>();

export async function takeProfile(
  what: SampledProfile,
  seconds: number,
  signal: AbortSignal,
): Promise<ProfileResult> {
  if (running.has(what)) return { kind: 'busy' };
  running.add(what);
  const session = new Session();
  session.connect();
  try {
    await RECORDERS[what].start(session);
    const elapsed = await sleep(seconds * 1000, true, { signal }).catch(() => false);
    const profile = await RECORDERS[what].stop(session);
    return elapsed ? { kind: 'done', text: JSON.stringify(profile) } : { kind: 'abandoned' };
  } finally {
    session.disconnect();
    running.delete(what);
  }
}

/** The whole heap. Everything stands still while it is taken. */
export function heapSnapshot(): Readable {
  return getHeapSnapshot();
}
