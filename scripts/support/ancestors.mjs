/**
 * Ends this process when npm, or what started npm, has gone without a word. Neither kill -9 nor SIGTERM to npm reaches
 * this process: there is a shell in between. What this process started goes with it.
 */
import { fstatSync, readFileSync, statSync } from 'node:fs';
import { basename } from 'node:path';

const INTERVAL_MS = 500;
/** For an orderly end. */
const GRACE_MS = 4000;
const PACKAGE_MANAGERS = ['npm', 'pnpm', 'yarn', 'bun'];

export function endWithAncestors() {
  const { watched, isOrphan } = findAncestors(process.ppid, {
    read: readProcess,
    env: process.env,
    isInBackground: isDevNull(0),
  });
  if (isOrphan) process.exit(1);
  const timer = setInterval(() => {
    if (watched.every(({ pid, startedAt }) => readProcess(pid)?.startedAt === startedAt)) return;
    clearInterval(timer);
    process.kill(process.pid, 'SIGTERM');
    setTimeout(() => process.exit(1), GRACE_MS);
  }, INTERVAL_MS);
  timer.unref();
}

/**
 * The parent; below npm also its shell, npm itself, and who started that. Not the last one where npm was put into the
 * background (nohup, `npm start &` in a script): the script may end before it.
 */
export function findAncestors(parent, { read, env, isInBackground }) {
  const first = read(parent);
  if (env.npm_lifecycle_event === undefined) return { watched: known([first]), isOrphan: false };
  const isShell = first?.command.includes(env.npm_lifecycle_script ?? '') && / -c /.test(first.command);
  const manager = isShell ? read(first.parent) : first;
  const isManager = [...PACKAGE_MANAGERS, basename(env.npm_execpath ?? 'npm')].some((name) =>
    manager?.command.includes(name),
  );
  const starter = isManager && !isInBackground && manager.parent > 0 ? read(manager.parent) : undefined;
  return { watched: known([first, manager, starter]), isOrphan: !isManager && (manager?.pid ?? 1) === 1 };
}

function known(processes) {
  return processes.filter((each) => each !== undefined);
}

/** `undefined` where there is none, or one that nobody has collected yet. */
function readProcess(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name before may have spaces and parentheses itself; proc_pid_stat(5) counts from there.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    return { pid, parent: Number(fields[1]), startedAt: fields[19], command };
  } catch {
    return undefined;
  }
}

function isDevNull(descriptor) {
  try {
    return fstatSync(descriptor).rdev === statSync('/dev/null').rdev;
  } catch {
    return true;
  }
}
