/** Pages for looking into the process. They cost time, so they are there only when asked for. */
import { Session } from 'node:inspector/promises';
import { type Answer, download, html, type Page, plain, readOnly, type Request } from './server.ts';
import { systemClock } from '../../time/systemClock.ts';
import { wait } from '../../time/wait.ts';

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
const COLLECTED = { includeObjectsCollectedByMajorGC: true, includeObjectsCollectedByMinorGC: true };
type SampledProfile = 'cpu' | 'allocations' | 'heap';

/** V8 has one profiler of the CPU and one of the heap. */
const running = new Set<'cpu' | 'heap'>();

/** `abandoned`: nobody waits for it any more. */
async function takeProfile(
  what: SampledProfile,
  seconds: number,
  signal: AbortSignal,
): Promise<{ kind: 'busy' | 'abandoned' } | { kind: 'done'; text: string }> {
  const profiler = what === 'cpu' ? 'cpu' : 'heap';
  if (running.has(profiler)) return { kind: 'busy' };
  running.add(profiler);
  const session = new Session();
  session.connect();
  try {
    if (what === 'cpu') {
      await session.post('Profiler.enable');
      await session.post('Profiler.start');
    } else {
      await session.post('HeapProfiler.enable');
      await session.post('HeapProfiler.startSampling', what === 'heap' ? {} : COLLECTED);
    }
    await wait(systemClock, seconds * 1000, signal);
    const elapsed = !signal.aborted;
    const { profile } = await (what === 'cpu'
      ? session.post('Profiler.stop')
      : session.post('HeapProfiler.stopSampling'));
    return elapsed ? { kind: 'done', text: JSON.stringify(profile) } : { kind: 'abandoned' };
  } finally {
    session.disconnect();
    running.delete(profiler);
  }
}
