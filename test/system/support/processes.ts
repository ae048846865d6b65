/** Which processes run. One that is dead and not yet waited for does not. */
import { readdirSync, readFileSync } from 'node:fs';

export function isRunning(pid: number): boolean {
  const state = stateOf(pid);
  return state !== undefined && state.state !== 'Z';
}

/** The processes of a group that run. */
export function groupOf(group: number): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => isRunning(pid) && stateOf(pid)?.group === group);
}

function stateOf(pid: number): { readonly state: string; readonly group: number } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state = '', , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state, group: Number(group) };
  } catch {
    return undefined;
  }
}
