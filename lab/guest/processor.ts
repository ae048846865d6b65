/**
 * A guest has one processor, which its kernel and its processes hand to each other thousands of times a second. On one
 * of the host's, that is a switch; between two, one has to wake the other, which takes a third more processor time in
 * all, and twice as long.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { isInstalled } from '../tools.ts';

const PIN = 'taskset';

/** What to put before the guest's command; nothing where the host cannot do it. */
export function onOneProcessor(guest: string): readonly string[] {
  const processor = isInstalled(PIN) ? freest(guest) : undefined;
  return processor === undefined ? [] : [PIN, '--cpu-list', String(processor)];
}

/** One of those that this process may use, with the fewest guests. */
function freest(guest: string): number | undefined {
  const guests = new Map(processorsOf('self').map((processor) => [processor, Math.random() / 2]));
  const count = guests.size;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const used = readOrNothing(`/proc/${pid}/comm`).trim() === guest ? processorsOf(pid) : [];
    // Each process of a guest is one of the host's: more of them, more to do.
    if (used.length < count) for (const each of used) guests.set(each, (guests.get(each) ?? 0) + 1);
  }
  return [...guests].sort(([, a], [, b]) => a - b)[0]?.[0];
}

function processorsOf(pid: string): readonly number[] {
  const list = /^Cpus_allowed_list:\t(.*)$/m.exec(readOrNothing(`/proc/${pid}/status`))?.[1] ?? '';
  return list.split(',').flatMap((range) => {
    const [first = Number.NaN, last = first] = range.split('-').map(Number);
    return Number.isInteger(first)
      ? Array.from({ length: last - first + 1 }, (_, index) => first + index)
      : [];
  });
}

/** The process may have ended. */
function readOrNothing(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
