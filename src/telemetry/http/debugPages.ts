import { type Answer, download, html, plain, type Request, readOnly, type Page } from './server.ts';
import { Session } from 'node:inspector/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/** Pages for looking into the process. They cost time, so they are there only when asked for. */

export interface DebugOptions {
  readonly setVerbosity: (level: number) => void;
}

const DEFAULT_SECONDS = 30;
const MAX_SECONDS = 600;
const MAX_VERBOSITY_BYTES = 64;

export function debugPages({ setVerbosity }: DebugOptions): ReadonlyMap<string, Page> {
  const index = readOnly(() => html(PPROF_INDEX));
  const flags = readOnly(() => html(FLAGS_INDEX));
  return new Map<string, Page>([
    ['/debug/pprof', index],
    ['/debug/pprof/', index],
    ['/debug/pprof/profile', readOnly((request) => sampled(request, 'cpu', 'junction.cpuprofile'))],
    ['/debug/pprof/allocs', readOnly((request) => sampled(request, 'allocations', 'junction.heapprofile'))],
    ['/debug/pprof/heap', readOnly((request) => sampled(request, 'heap', 'junction.heapprofile'))],
    ['/debug/pprof/cmdline', readOnly(() => plain(200, process.argv.join('\0')))],
    ['/debug/flags', flags],
    ['/debug/flags/', flags],
    ['/debug/flags/v', (request) => putVerbosity(request, setVerbosity)],
  ]);
}

async function sampled(request: Request, what: SampledProfile, fileName: string): Promise<Answer> {
  const text = request.query.get('seconds') ?? String(DEFAULT_SECONDS);
  const seconds = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (!(seconds > 0 && seconds <= MAX_SECONDS)) {
    return plain(400, `seconds must be a number above 0, and at most ${MAX_SECONDS}\n`);
  }
  if (request.method === 'HEAD') return download(fileName, '');
  const result = await takeProfile(what, seconds, request.signal);
  if (result.kind === 'busy') return plain(409, 'a profile of this kind is under way\n');
  return download(fileName, result.kind === 'done' ? result.text : '');
}

async function putVerbosity(request: Request, setVerbosity: (level: number) => void): Promise<Answer> {
  if (request.method !== 'PUT') return plain(406, 'unsupported http method\n');
  const text = (await request.text(MAX_VERBOSITY_BYTES))?.trim();
  if (text === undefined || !/^-?\d{1,9}$/.test(text)) {
    return plain(400, `failed set klog.logging.verbosity ${text ?? ''}: not a whole number\n`);
  }
  setVerbosity(Number(text));
  return plain(200, `successfully set klog.logging.verbosity to ${text}\n`);
}

const PPROF_INDEX = `<html>
<head><title>/debug/pprof/</title></head>
<body>
<h1>/debug/pprof/</h1>
<p>These are profiles of Node.js, not of Go: open them in Chrome's developer tools or with speedscope.app.
<code>go tool pprof</code> does not read them.</p>
<ul>
<li><a href="/debug/pprof/profile?seconds=30">profile?seconds=30</a>: where the CPU's time goes (.cpuprofile)</li>
<li><a href="/debug/pprof/allocs?seconds=30">allocs?seconds=30</a>: who allocates memory (.heapprofile)</li>
<li><a href="/debug/pprof/heap?seconds=30">heap?seconds=30</a>: who allocates memory that stays (.heapprofile). It has
names of functions and sizes, and nothing of what is in memory: the token for the API server is there too</li>
<li><a href="/debug/pprof/cmdline">cmdline</a>: how the process was started</li>
</ul>
</body>
</html>
`;

const FLAGS_INDEX = `<html>
<head><title>/debug/flags/</title></head>
<body>
<h1>/debug/flags/</h1>
<p>v: how much is logged; <code>curl -X PUT -d 4 …/debug/flags/v</code> sets it.</p>
</body>
</html>
`;

/**
 * Profiles of the running process, in the formats that Chrome's developer tools and speedscope.app open.
 *
 * There is no heap snapshot: it holds every string in memory, the token for the API server among them, and would hand
 * it to whoever reaches the port. A sampled profile has names of functions, places in the program and numbers.
 */

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
