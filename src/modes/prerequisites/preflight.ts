/** Is everything there that a mode needs? Asked before the first write. */
import { JunctionError } from '../../errors.ts';
import type { Log } from '../../log/log.ts';
import type { Family } from '../../model/ip.ts';
import { capabilityCheck } from './capabilities.ts';
import { type Check, summary, verdictOf } from './check.ts';
import type { Machine, TrialDoor } from './machine.ts';
import { iptablesModeChecks } from '../iptables/prerequisites.ts';
import { ipvsModeChecks } from '../ipvs/prerequisites.ts';
import { nftablesModeChecks } from '../nftables/prerequisites.ts';
import { noIpv6, openTrialDoors } from './programs.ts';
import type { PreflightMode, PreflightSettings } from './settings.ts';

/** All of it, as one who has not started anything yet sees it. */
export async function checkMode(
  mode: PreflightMode,
  settings: PreflightSettings,
  families: readonly Family[],
  machine: Machine,
): Promise<readonly Check[]> {
  if (mode === 'nftables') return withCapability(machine, () => checkNftables(families, machine));
  return withCapability(machine, async () => {
    const { doors, checks } = await openTrialDoors(machine, families);
    return [...checks, ...(await modeChecks(mode, settings, doors, machine))];
  });
}

async function checkNftables(families: readonly Family[], machine: Machine): Promise<readonly Check[]> {
  const served = families.filter((family) => family === 'IPv4' || machine.hasIpv6());
  return [
    ...(served.length < families.length ? [noIpv6(families.length > 1)] : []),
    ...(await nftablesModeChecks(machine, served)),
  ];
}

/** With the doors that are open already. */
export function checkModeWith(
  mode: IptablesMode,
  settings: PreflightSettings,
  doors: readonly TrialDoor[],
  machine: Machine,
): Promise<readonly Check[]> {
  return withCapability(machine, () => modeChecks(mode, settings, doors, machine));
}

/** Without it everything else would be refused too, twenty times in other words. */
async function withCapability(
  machine: Machine,
  rest: () => Promise<readonly Check[]>,
): Promise<readonly Check[]> {
  const capability = capabilityCheck(machine.processStatus());
  return capability.state === 'missing' ? [capability] : [capability, ...(await rest())];
}

/** Warns of what is short; throws when something that is needed is missing, and names all of it. */
export function report(
  mode: PreflightMode,
  checks: readonly Check[],
  log: Pick<Log, 'warn' | 'verbose'>,
): void {
  const verdict = verdictOf(checks);
  for (const { subject, state, needed, found, remedy } of checks) {
    const fields = { what: subject, found, needed, whatToDo: remedy };
    if (state === 'degraded') log.warn('The machine lacks something that is needed for a part', fields);
    // Next to what is missing, what could not be tried for its want is noise.
    else if (state === 'unknown' && needed === 'always' && verdict === 'unclear')
      log.warn('Could not check something that is needed', fields);
    else log.verbose(2, 'Checked', { ...fields, state });
  }
  if (verdict !== 'no') return;
  const missing = checks.filter(({ state }) => state === 'missing');
  throw new JunctionError('PREFLIGHT_FAILED', summary(mode, missing).replace(/\.$/, ''), {
    detail: missing.map(({ subject, found, remedy }) => `- ${subject}: ${found}\n  ${remedy}`).join('\n'),
    hint: `Bring what is missing; \`junction check --proxy-mode=${mode}\` shows all of it.`,
  });
}

/** That writes rules of iptables. */
type IptablesMode = Exclude<PreflightMode, 'nftables'>;

async function modeChecks(
  mode: IptablesMode,
  settings: PreflightSettings,
  doors: readonly TrialDoor[],
  machine: Machine,
): Promise<readonly Check[]> {
  switch (mode) {
    case 'iptables':
      return iptablesModeChecks(machine, doors, settings);
    case 'ipvs':
      return ipvsModeChecks(machine, doors, settings);
  }
}
