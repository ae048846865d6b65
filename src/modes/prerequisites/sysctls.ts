/** Kernel settings: whether each is as it must be, or can be made so. */
import { absent, type Check, type Need, present, unknown } from './check.ts';
import type { Machine } from './machine.ts';

export interface WantedSysctl {
  readonly name: string;
  readonly value: number;
  readonly needed: Need;
  /** The module that brings it. */
  readonly module?: string | undefined;
}

export function sysctlChecks(machine: Machine, wanted: readonly WantedSysctl[]): readonly Check[] {
  const checks = wanted.map((each) => sysctlCheck(machine, each));
  const good = checks.filter(({ state }) => state === 'present');
  const bad = checks.filter(({ state }) => state !== 'present');
  if (good.length < 2) return checks;
  const needed = good.find((check) => check.needed === 'always')?.needed ?? good[0]?.needed ?? 'always';
  const found = good.map((check) => `${check.subject.replace('sysctl ', '')} ${check.found}`).join('; ');
  return [present('sysctls', needed, found), ...bad];
}

function sysctlCheck(machine: Machine, { name, value, needed, module }: WantedSysctl): Check {
  const subject = `sysctl ${dotted(name)}`;
  const look = machine.sysctl(name);
  switch (look.state) {
    case 'absent':
      return absent(
        subject,
        needed,
        'the kernel has no such setting',
        module === undefined
          ? 'This kernel is built without it.'
          : `It comes with the kernel module ${module}: modprobe ${module}. If that is loaded, the module is built without it.`,
      );
    case 'unreadable':
      return unknown(subject, needed, `cannot be read: ${look.reason}`, 'Run as root, with /proc mounted.');
    case 'value':
      if (look.value === String(value)) return present(subject, needed, `is ${value}`);
      return look.writable
        ? present(subject, needed, `is ${look.value}, and can be set to ${value}`)
        : absent(
            subject,
            needed,
            `is ${look.value}, must be ${value}, and may not be written`,
            `On the node: sysctl -w ${dotted(name)}=${value}. In a container: mount the node's /proc/sys/net, writable, and name the place (--sysctl-root).`,
          );
  }
}

/** As the program sysctl prints them; none of these names has a dot of its own. */
function dotted(name: string): string {
  return name.replaceAll('/', '.');
}
