/**
 * What `junction doctor` says of this node, for the page. It is asked in a process of its own, so that no sync waits for it:
 * it reads tables, links and settings, and starts programs that do. Trials and probes are not for this, which is asked
 * again and again: people ask for those at a shell.
 */
import type { DoctorGroupName, DoctorReport } from '../../explain/doctorReport.ts';
import type { Argv, CommandRunner } from '../../system/processes.ts';
import type { Clock } from '../../time/clock.ts';
import { RefusedQuestion } from './routes.ts';

interface DoctorReportsOptions {
  readonly clock: Clock;
  readonly run: CommandRunner;
  /** Where it asks this proxy. */
  readonly socket: () => string;
  /** Few enough services that all of them can be looked at. */
  readonly isSmall: () => boolean;
  /** How this program was started. */
  readonly program?: readonly string[];
}

/** A page that stays open asks again and again. */
const KEPT_MS = 10_000;
/** Less than a client of the socket may wait. */
const LIMIT_MS = 25_000;
/** Of V8, in MiB: some thousand services need a tenth of it. */
const HEAP_MIB = 256;

const OF_MACHINE: readonly DoctorGroupName[] = [
  'sysctls',
  'other-proxies',
  'firewall',
  'proxy',
  'api-server',
  'conntrack',
];
const OF_SERVICES: readonly DoctorGroupName[] = ['routes', 'rules', 'packets', 'services'];

export class DoctorReports {
  readonly #options: DoctorReportsOptions;
  readonly #stop = new AbortController();
  #last: Promise<DoctorReport> | undefined;
  /** The last answer is one for everybody until then. */
  #keptUntil = Number.POSITIVE_INFINITY;

  constructor(options: DoctorReportsOptions) {
    this.#options = options;
  }

  /** One at a time, whoever asks. A failure is kept as long as an answer. */
  report(): Promise<DoctorReport> {
    const { clock } = this.#options;
    if (this.#last && clock.now() < this.#keptUntil) return this.#last;
    this.#keptUntil = Number.POSITIVE_INFINITY;
    this.#last = this.#ask().finally(() => (this.#keptUntil = clock.now() + KEPT_MS));
    return this.#last;
  }

  close(): void {
    this.#stop.abort(new RefusedQuestion(503, 'stopping', 'the proxy is being stopped'));
  }

  async #ask(): Promise<DoctorReport> {
    const { run } = this.#options;
    const { code, signal, stdout, stderr } = await run(this.#argv(), {
      timeoutMs: LIMIT_MS,
      signal: this.#stop.signal,
      isBackground: true,
    });
    // 1: it has found a problem.
    if (code === 0 || code === 1) {
      const report = parsed(stdout);
      if (report) return report;
    }
    const why = stderr.trim().split('\n').at(-1) || `it ended with ${signal ?? `status ${code}`}`;
    throw new RefusedQuestion(503, 'doctor-failed', `junction doctor: ${why}`, 'Run it on the node.');
  }

  #argv(): Argv {
    const { socket, isSmall, program = [process.argv[1] ?? ''] } = this.#options;
    const path = socket();
    if (path === '')
      throw new RefusedQuestion(
        404,
        'no-socket',
        'doctor asks this proxy at its socket, and there is none',
        'Start Junction with --api-socket.',
      );
    const groups = [...OF_MACHINE, ...(isSmall() ? OF_SERVICES : [])];
    return [
      process.execPath,
      `--max-old-space-size=${HEAP_MIB}`,
      ...program,
      'doctor',
      '--output=json',
      `--only=${groups.join(',')}`,
      `--api-socket=${path}`,
    ];
  }
}

function parsed(text: string): DoctorReport | undefined {
  try {
    return JSON.parse(text) as DoctorReport;
  } catch {
    return undefined;
  }
}
