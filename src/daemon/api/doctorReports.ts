/**
 * What `junction doctor` says of this node, for the page. It is asked in a process of its own, so that no sync waits for it:
 * it reads tables, links and settings, and starts programs that do. Trials and probes are not for this, which is asked
 * again and again: people ask for those at a shell.
 */
import { isJunctionError } from '../../errors.ts';
import {
  DOCTOR_GROUPS,
  type DoctorGroup,
  type DoctorGroupName,
  type DoctorReport,
} from '../../explain/doctorReport.ts';
import type { ModeName } from '../../model/mode.ts';
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
  readonly mode: ModeName;
  /** How this program was started. */
  readonly program?: readonly string[];
}

/** A page that stays open asks again and again. */
const KEPT_MS = 10_000;
/** It has a lower priority: a machine without processor time to spare took more than 25 s. */
const LIMIT_MS = 120_000;
/** Of V8, in MiB: some thousand services need a tenth of it. */
const HEAP_MIB = 256;

const OF_SERVICES: ReadonlySet<DoctorGroupName> = new Set(['routes', 'rules', 'packets', 'services']);

/** Why a group is left out; `undefined`: it is looked at. */
function whyNot(
  group: DoctorGroupName,
  { isSmall, mode }: Pick<DoctorReportsOptions, 'isSmall' | 'mode'>,
): string | undefined {
  if (group === 'kernel') return 'what it can do is tried out, and this only reads';
  if (isSmall()) return undefined;
  if (OF_SERVICES.has(group)) return 'there are too many services to look at all of them again and again';
  // iptables-legacy holds its lock while it reads, and syncs wait for it.
  if (group === 'firewall' && mode === 'iptables')
    return 'to read so many rules may take the lock that syncs wait for';
  return undefined;
}

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
    const all = DOCTOR_GROUPS.filter((name) => name !== 'probe').map((name) => ({
      name,
      why: whyNot(name, this.#options),
    }));
    const groups = all.flatMap(({ name, why }) => (why === undefined ? name : []));
    const { code, signal, stdout, stderr } = await run(this.#argv(groups), {
      timeoutMs: LIMIT_MS,
      signal: this.#stop.signal,
      isBackground: true,
    }).catch((error: unknown) => {
      // Too slow, or not started: this machine is short of something, and may not be later.
      throw isJunctionError(error) ? failed(error.message) : error;
    });
    // 1: it has found a problem.
    if (code === 0 || code === 1) {
      const report = parsed(stdout);
      const left = all.flatMap(({ name, why }) => (why === undefined ? [] : leftOut(name, why)));
      if (report) return { ...report, groups: [...report.groups, ...left].sort(inOrder) };
    }
    const why = stderr.trim().split('\n').at(-1) || `it ended with ${signal ?? `status ${code}`}`;
    throw failed(`junction doctor: ${why}`);
  }

  #argv(groups: readonly DoctorGroupName[]): Argv {
    const { socket, program = [process.argv[1] ?? ''] } = this.#options;
    const path = socket();
    if (path === '')
      throw new RefusedQuestion(
        404,
        'no-socket',
        'doctor asks this proxy at its socket, and there is none',
        'Start Junction with --api-socket.',
      );
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

function failed(message: string): RefusedQuestion {
  return new RefusedQuestion(503, 'doctor-failed', message, 'Run junction doctor on the node.');
}

function leftOut(name: DoctorGroupName, why: string): DoctorGroup {
  return { name, findings: [], fine: [], notEvaluated: [`${name}: ${why}; junction doctor does it`] };
}

function inOrder(a: DoctorGroup, b: DoctorGroup): number {
  return DOCTOR_GROUPS.indexOf(a.name) - DOCTOR_GROUPS.indexOf(b.name);
}

function parsed(text: string): DoctorReport | undefined {
  try {
    return JSON.parse(text) as DoctorReport;
  } catch {
    return undefined;
  }
}
