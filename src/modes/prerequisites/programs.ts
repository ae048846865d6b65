/** The programs of iptables, one set for each family. */
import { isJunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import { type Argv, isUnanswered } from '../../system/processes.ts';
import { absent, type Check, present, unknown } from './check.ts';
import type { Machine, TrialDoor } from './machine.ts';

export interface Opened {
  readonly doors: readonly TrialDoor[];
  readonly checks: readonly Check[];
}

export async function openTrialDoors(machine: Machine, families: readonly Family[]): Promise<Opened> {
  const doors: TrialDoor[] = [];
  const checks: Check[] = [];
  for (const family of families) {
    if (family === 'IPv6' && !machine.hasIpv6()) {
      checks.push(noIpv6(families.length > 1));
      continue;
    }
    const opened = await open(machine, family);
    checks.push(opened.check);
    if (opened.door) doors.push(opened.door);
  }
  return { doors, checks };
}

interface OpenedOne {
  readonly door?: TrialDoor;
  readonly check: Check;
}

async function open(machine: Machine, family: Family): Promise<OpenedOne> {
  const subject = `programs ${family === 'IPv4' ? 'iptables' : 'ip6tables'}, -save, -restore`;
  try {
    const door = await machine.openDoor(family);
    const { save, restore } = door.programs;
    for (const program of [save, restore]) await start(machine, [program, '--version']);
    const found = `version ${door.version}, ${door.variant} variant: ${door.reason}`;
    return { door, check: present(subject, 'always', found) };
  } catch (error) {
    if (!isJunctionError(error)) throw error;
    return { check: (isUnanswered(error) ? unknown : absent)(subject, 'always', error.message, error.hint) };
  }
}

/** With empty input, because an old one does not know the option and goes on to read rules. */
async function start(machine: Machine, argv: Argv): Promise<void> {
  await machine.run(argv, { stdin: '' });
}

export function noIpv6(others: boolean): Check {
  return absent(
    'IPv6',
    others ? 'for IPv6 services' : 'always',
    'this machine has no IPv6, or it is turned off',
    'Nothing, if the cluster has none; otherwise sysctl -w net.ipv6.conf.all.disable_ipv6=0, and boot without ipv6.disable=1.',
  );
}
