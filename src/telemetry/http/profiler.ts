/**
 * Profiles of the running process, in the formats that Chrome's developer tools and speedscope.app open.
 *
 * There is no heap snapshot: it holds every string in memory, the token for the API server among them, and would hand
 * it to whoever reaches the port. A sampled profile has names of functions, places in the program and numbers.
 */
import { Session } from 'node:inspector/promises';
import { setTimeout as sleep } from 'node:timers/promises';

export type SampledProfile = 'cpu' | 'allocations' | 'heap';

/** The JSON of a profile, or why there is none. */
export type ProfileResult =
  | { readonly kind: 'done'; readonly text: string }
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
  allocations: heapSampling({
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  }),
  heap: heapSampling({}),
};

interface SamplingOptions {
  readonly includeObjectsCollectedByMajorGC?: boolean;
  readonly includeObjectsCollectedByMinorGC?: boolean;
}

function heapSampling(options: SamplingOptions): Recorder {
  return {
    start: async (session) => {
      await session.post('HeapProfiler.enable');
      await session.post('HeapProfiler.startSampling', options);
    },
    stop: async (session) => (await session.post('HeapProfiler.stopSampling')).profile,
  };
}

/** V8 has one profiler of the CPU and one of the heap. */
const running = new Set<'cpu' | 'heap'>();

export async function takeProfile(
  what: SampledProfile,
  seconds: number,
  signal: AbortSignal,
): Promise<ProfileResult> {
  const profiler = what === 'cpu' ? 'cpu' : 'heap';
  if (running.has(profiler)) return { kind: 'busy' };
  running.add(profiler);
  const session = new Session();
  session.connect();
  try {
    await RECORDERS[what].start(session);
    const elapsed = await sleep(seconds * 1000, true, { signal }).catch(() => false);
    const profile = await RECORDERS[what].stop(session);
    return elapsed ? { kind: 'done', text: JSON.stringify(profile) } : { kind: 'abandoned' };
  } finally {
    session.disconnect();
    running.delete(profiler);
  }
}
