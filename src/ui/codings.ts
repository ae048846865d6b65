/** Which content coding a client gets. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Coding } from './files.ts';

/** The best of these that it accepts; a coding with a weight of 0 is refused by it. */
export function chooseCoding<T extends Coding>(
  headers: IncomingHttpHeaders,
  best: readonly T[],
): T | 'identity' {
  const accepted = new Set<string>();
  for (const part of (headers['accept-encoding'] ?? '').split(',')) {
    const [name = '', ...parameters] = part
      .toLowerCase()
      .split(';')
      .map((word) => word.trim());
    if (!parameters.some((parameter) => /^q\s*=\s*0(?:\.0*)?$/.test(parameter))) accepted.add(name);
  }
  return best.find((coding) => accepted.has(coding)) ?? 'identity';
}
