/** What the process may do, from /proc/self/status. Pure. */
import { absent, type Check, present } from './check.ts';

/** linux/capability.h */
const CAPABILITY_BITS = { NET_ADMIN: 12n, SYS_MODULE: 16n } as const;

export type Capability = keyof typeof CAPABILITY_BITS;

export function hasCapability(processStatus: string, capability: Capability): boolean {
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
