/**
 * The programs that run for us right now. Each leads a process group of its own, so that one that hangs is killed
 * together with whatever it started: iptables runs modprobe, and in many images it is a shell script.
 */
import type { ChildProcess } from 'node:child_process';

/** Between SIGTERM and SIGKILL. iptables ends within milliseconds when it can end at all. */
const KILL_GRACE_MS = 1000;
/** How long a killed program may take to disappear: one that waits inside the kernel for a disk or a lock stays. */
const GONE_GRACE_MS = 1000;

interface RunningChild {
  readonly pid: number;
  /** `iptables-restore -w 5 --noflush --counters` */
  readonly command: string;
  readonly startedAt: number;
}

const running = new Map<number, RunningChild>();
let endsWithProcess = false;

/** Notes the child until it has ended. */
export function trackChild(child: ChildProcess, command: string): void {
  const { pid } = child;
  if (pid === undefined) return;
  if (!endsWithProcess) {
    endsWithProcess = true;
    process.on('exit', () => killChildren('SIGKILL'));
  }
  running.set(pid, { pid, command, startedAt: performance.now() });
  child.once('exit', () => running.delete(pid));
}

/** `iptables-restore -w 5 --noflush (pid 4711, for 31 s)` */
export function printChildren(): readonly string[] {
  return [...running.values()].map(({ pid, command, startedAt }) => {
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    return `${command} (pid ${pid}, for ${seconds} s)`;
  });
}

/** All of them, each with its group. */
export function killChildren(signal: 'SIGTERM' | 'SIGKILL'): void {
  for (const pid of running.keys()) signalGroup(pid, signal);
}

/** SIGTERM, and SIGKILL for what is still there after the grace. Resolves when the child has ended, or will not. */
export async function endGroup(child: ChildProcess): Promise<void> {
  const { pid } = child;
  if (pid === undefined || hasEnded(child)) return;
  signalGroup(pid, 'SIGTERM');
  const ended = await endsWithin(child, KILL_GRACE_MS);
  // Also when the leader has ended: others of its group may have ignored the first signal.
  signalGroup(pid, 'SIGKILL');
  if (!ended) await endsWithin(child, GONE_GRACE_MS);
}

function signalGroup(pid: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // ESRCH: all of them have ended.
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

function endsWithin(child: ChildProcess, milliseconds: number): Promise<boolean> {
  return new Promise((resolve) => {
    if (hasEnded(child)) {
      resolve(true);
      return;
    }
    const settle = (ended: boolean) => (): void => {
      clearTimeout(timer);
      child.off('exit', onExit);
      resolve(ended);
    };
    const onExit = settle(true);
    const timer = setTimeout(settle(false), milliseconds);
    child.once('exit', onExit);
  });
}
