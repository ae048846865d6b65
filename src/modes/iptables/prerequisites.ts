/** What iptables mode needs. */
import type { Check } from '../prerequisites/check.ts';
import { conntrackCheck } from '../prerequisites/conntrackNetlink.ts';
import { PHYSDEV } from '../prerequisites/extensions.ts';
import { ruleChecks } from '../prerequisites/iptables.ts';
import type { Machine, TrialDoor } from '../prerequisites/machine.ts';
import type { PreflightSettings } from '../prerequisites/settings.ts';
import { sysctlChecks, type WantedSysctl } from '../prerequisites/sysctls.ts';
import { iptablesTrialRules } from '../prerequisites/trialRules.ts';

export async function iptablesModeChecks(
  machine: Machine,
  clients: readonly TrialDoor[],
  settings: PreflightSettings,
): Promise<readonly Check[]> {
  const { layout } = settings;
  const families = clients.map(({ family }) => family);
  const rules = await ruleChecks(machine, clients, {
    rulesOf: (support) => iptablesTrialRules(support, layout),
    sets: false,
    counters: layout === 'current',
    physdev: layout === 'classic' ? PHYSDEV : undefined,
  });
  return [...rules, await conntrackCheck(machine, families), ...sysctlChecks(machine, sysctls(settings))];
}

function sysctls({ localhostNodePorts }: PreflightSettings): readonly WantedSysctl[] {
  return localhostNodePorts
    ? [{ name: 'net/ipv4/conf/all/route_localnet', value: 1, needed: 'for node ports on 127.0.0.1' }]
    : [];
}
