/** What the process may do, from /proc/self/status. */
import { readFileSync } from 'node:fs';
import { JunctionError } from '../../errors.ts';
import { absent, type Check, present } from './check.ts';

/** linux/capability.h */
const CAPABILITY_BITS = { NET_ADMIN: 12n, SYS_MODULE: 16n } as const;

export function readProcessStatus(): string {
  return readFileSync('/proc/self/status', 'utf8');
}

export function hasCapability(processStatus: string, capability: keyof typeof CAPABILITY_BITS): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(processStatus)?.[1];
  return effective !== undefined && ((BigInt(`0x${effective}`) >> CAPABILITY_BITS[capability]) & 1n) === 1n;
}

export function capabilityCheck(processStatus: string): Check {
  const subject = 'capability NET_ADMIN';
  if (!hasCapability(processStatus, 'NET_ADMIN')) {
    return absent(
      subject,
      'always',
      'this process may not change the network',
      'Run as root; in a container, privileged or with the capability NET_ADMIN (securityContext.capabilities.add).',
    );
  }
  const loads = hasCapability(processStatus, 'SYS_MODULE')
    ? 'may change the network and load kernel modules'
    : 'may change the network; not load kernel modules, which matters only if one is missing';
  return present(subject, 'always', loads);
}

/** Comes first: without it every program and every socket is refused, each with another message. */
export function requireNetAdmin(): void {
  if (hasCapability(readProcessStatus(), 'NET_ADMIN')) return;
  throw new JunctionError(
    'NOT_PERMITTED',
    'this process may not change the network: it lacks the capability NET_ADMIN',
  );
}
