/** Before the first write: is everything there that the mode needs? */
import { toSettings, type ValidConfig } from '../config/index.ts';
import { isJunctionError } from '../errors.ts';
import type { IptablesClient } from './iptables/client.ts';
import { type Check, verdictOf } from './prerequisites/check.ts';
import type { Machine } from './prerequisites/machine.ts';
import { abilitiesOf, type NftAbilities } from './prerequisites/nftables.ts';
import { checkMode, checkModeWith, report } from './prerequisites/preflight.ts';
import type { PreflightSettings } from './prerequisites/settings.ts';
import { systemMachine } from './prerequisites/systemMachine.ts';
import type { CommandRunner } from '../system/processes.ts';
import type { Family } from '../model/ip.ts';
import { nodeView } from '../plan/view.ts';
import { probeClient, isIpv6Enabled } from './iptables/families.ts';
import type { FamilyAnswer, LeftOutFamily, NotServed } from './familyState.ts';
import type { ModeOptions } from './mode.ts';

type PreflightOptions = Pick<ModeOptions, 'config' | 'log' | 'runner'>;
type IptablesMode = 'iptables' | 'ipvs';

/** Throws when something that is needed is missing. */
export async function preflight(
  mode: IptablesMode,
  doors: readonly IptablesClient[],
  families: readonly Family[],
  { config, log, runner }: PreflightOptions,
): Promise<void> {
  const served = doors.filter(({ family }) => families.includes(family));
  report(mode, await checkModeWith(mode, preflightSettings(config), served, machineOf(config, runner)), log);
}

/** Of a family that was left out: whether it works now, with everything that the mode needs of it. */
export async function askAgain(
  mode: IptablesMode,
  doors: readonly IptablesClient[],
  family: Family,
  options: PreflightOptions,
): Promise<FamilyAnswer> {
  const door = doors.find((other) => other.family === family);
  if (!door)
    return {
      state: 'absent',
      reason: 'its programs could not be used when Junction started',
      remedy: 'Restart Junction once they are installed.',
    };
  try {
    const answer = await probeClient(door);
    if (answer.state === 'works') await preflight(mode, [door], [family], options);
    return answer;
  } catch (error) {
    if (!isJunctionError(error)) throw error;
    return { state: 'absent', reason: [error.message, error.detail].join(' '), remedy: error.hint };
  }
}

interface NftPreflight extends NftAbilities {
  readonly leftOut: readonly LeftOutFamily[];
}

/** Answers what the mode can do here. Throws when something that is needed is missing. */
export async function nftPreflight(
  families: readonly Family[],
  { config, log, runner }: PreflightOptions,
): Promise<NftPreflight> {
  const checks = await checkMode('nftables', preflightSettings(config), families, machineOf(config, runner));
  report('nftables', checks, log);
  const abilities = abilitiesOf(checks, families);
  const leftOut = families
    .filter((family) => !abilities.families.includes(family))
    .map((family) => ({ family, answer: lackOf(checks, family) }));
  return { ...abilities, leftOut };
}

export async function askForTables(family: Family, options: PreflightOptions): Promise<FamilyAnswer> {
  const { config, runner } = options;
  const checks = await checkMode('nftables', preflightSettings(config), [family], machineOf(config, runner));
  return verdictOf(checks) === 'yes' ? { state: 'works' } : lackOf(checks, family);
}

function lackOf(checks: readonly Check[], family: Family): NotServed {
  const lack = checks.find(({ subject, state }) => state !== 'present' && subject.endsWith(family));
  return {
    state: 'absent',
    reason: lack?.found ?? 'the kernel has no nftables of this family',
    remedy: lack?.remedy ?? '',
  };
}

function machineOf({ junction }: ValidConfig, runner: CommandRunner): Machine {
  const { iptablesVariant: variant, sysctlRoot } = junction;
  return systemMachine({ variant, sysctlRoot, runner, hasIpv6: isIpv6Enabled });
}

export function preflightSettings(config: ValidConfig): PreflightSettings {
  const settings = toSettings(config, config.hostnameOverride);
  const { nodePorts } = nodeView(settings, undefined, 'IPv4');
  return {
    layout: config.junction.iptablesLayout,
    localhostNodePorts: nodePorts.loopback,
    scheduler: settings.scheduler,
    strictArp: config.ipvs.strictARP,
  };
}
