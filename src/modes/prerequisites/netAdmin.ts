/** Asked first, because without it every program and every socket is refused, each in words of its own. */
import { readFileSync } from 'node:fs';
import { JunctionError } from '../../errors.ts';
import { hasCapability } from './capabilities.ts';

export function requireNetAdmin(): void {
  if (hasCapability(readFileSync('/proc/self/status', 'utf8'), 'NET_ADMIN')) return;
  throw new JunctionError(
    'NOT_PERMITTED',
    'this process may not change the network: it lacks the capability NET_ADMIN',
  );
}
