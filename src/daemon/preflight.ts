/** Before the first write: is everything there that the mode needs? */
import { toSettings, type ValidConfig } from '../config/index.ts';
import type { IptablesDoor } from '../kernel/iptables/door.ts';
import type { Machine } from '../kernel/preflight/machine.ts';
import { abilitiesOf, type NftAbilities } from '../kernel/preflight/nftables.ts';
import { checkMode, checkModeWith, report } from '../kernel/preflight/preflight.ts';
import type { PreflightSettings } from '../kernel/preflight/settings.ts';
import { systemMachine } from '../kernel/preflight/systemMachine.ts';
import type { CommandRunner } from '../kernel/process.ts';
import type { Family } from '../model/ip.ts';
import { nodeView } from '../plan/view.ts';
import { isIpv6Enabled } from './families.ts';
import type { ModeOptions } from './mode.ts';

type PreflightOptions = Pick<ModeOptions, 'log' | 'runner'>;

/** Throws when something that is needed is missing. */
export async function preflight(
  mode: 'iptables' | 'ipvs',
  config: ValidConfig,
  doors: readonly IptablesDoor[],
  { log, runner }: PreflightOptions,
): Promise<void> {
  report(mode, await checkModeWith(mode, preflightSettings(config), doors, machineOf(config, runner)), log);
}

/** Answers what the mode can do here. Throws when something that is needed is missing. */
export async function nftPreflight(
  config: ValidConfig,
  families: readonly Family[],
  { log, runner }: PreflightOptions,
): Promise<NftAbilities> {
  const checks = await checkMode('nftables', preflightSettings(config), families, machineOf(config, runner));
  report('nftables', checks, log);
  return abilitiesOf(checks, families);
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
