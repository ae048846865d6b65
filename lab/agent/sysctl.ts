import { writeFileSync } from 'node:fs';

/** /proc/sys/net shows the namespace of whoever opens it, so the agent writes and no `sysctl` process is needed. */
export function writeSysctls(values: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(values)
    .filter(([path, value]) => !write(`/proc/sys/${path}`, value))
    .map(([path]) => path);
}

function write(file: string, value: string): boolean {
  try {
    writeFileSync(file, value);
    return true;
  } catch {
    return false;
  }
}
