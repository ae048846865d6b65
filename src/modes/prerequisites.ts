/** Before the first write: is everything there that the mode needs? */
import type { ValidConfig } from '../config/effective.ts';
import { isJunctionError } from '../errors.ts';
import type { Family } from '../model/ip.ts';
import type { FamilyAnswer, FamilySupport, ModeOptions } from './mode.ts';
import type { IptablesClient } from './iptables/client.ts';
import { probeClient } from './iptables/families.ts';
import { foreignRuleChecks, iptablesModeChecks, openClients } from './iptables/prerequisites.ts';
import { ipvsModeChecks } from './ipvs/prerequisites.ts';
import { canServe, nftablesModeChecks } from './nftables/prerequisites.ts';
import { absent, capabilityCheck, type Check, report } from './prerequisites/check.ts';
import { type Machine, systemMachine } from './prerequisites/machine.ts';

type PreflightOptions = Pick<ModeOptions, 'config' | 'log' | 'runner'>;
const RULE_CHECKS = { iptables: iptablesModeChecks, ipvs: ipvsModeChecks } as const;

/** Everything that the mode needs. */
export async function checkMode(
  config: ValidConfig,
  families: readonly Family[],
  machine: Machine,
): Promise<readonly Check[]> {
  const capability = capabilityCheck(machine.processStatus());
  // Without it everything else would be refused too, each in other words.
  if (capability.state === 'missing') return [capability];
  const enabled = families.filter((family) => family === 'IPv4' || machine.hasIpv6());
  const present = enabled.length < families.length ? [capability, noIpv6(enabled)] : [capability];
  if (config.mode === 'nftables') return [...present, ...(await nftablesModeChecks(machine, enabled))];
  const { clients, checks } = await openClients(machine, enabled);
  return [
    ...present,
    ...checks,
    ...(await RULE_CHECKS[config.mode](machine, clients, config)),
    ...(await foreignRuleChecks(clients)),
  ];
}

function noIpv6(others: readonly Family[]): Check {
  return absent(
    'IPv6',
    others.length > 0 ? 'for IPv6 services' : 'always',
    'this machine has no IPv6, or it is turned off',
    'Nothing, if the cluster has none; otherwise sysctl -w net.ipv6.conf.all.disable_ipv6=0, and boot without ipv6.disable=1.',
  );
}

/** With open clients. Throws when something that is needed is missing. */
export async function preflight(
  mode: keyof typeof RULE_CHECKS,
  clients: readonly IptablesClient[],
  families: readonly Family[],
  { config, log, runner }: PreflightOptions,
): Promise<void> {
  const served = clients.filter(({ family }) => families.includes(family));
  const machine = systemMachine(config.junction, runner);
  report(mode, await RULE_CHECKS[mode](machine, served, config), log);
}

/** Whether a family that was left out can be served now. */
export async function askAgain(
  mode: keyof typeof RULE_CHECKS,
  clients: readonly IptablesClient[],
  family: Family,
  options: PreflightOptions,
): Promise<FamilyAnswer> {
  const client = clients.find((other) => other.family === family);
  if (!client)
    return {
      state: 'absent',
      reason: 'its programs could not be used when Junction started',
      remedy: 'Restart Junction once they are installed.',
    };
  try {
    const answer = await probeClient(client);
    if (answer.state === 'works') await preflight(mode, [client], [family], options);
    return answer;
  } catch (error) {
    if (!isJunctionError(error)) throw error;
    return { state: 'absent', reason: [error.message, error.detail].join(' '), remedy: error.hint };
  }
}

/** Which families nftables can serve here. Throws when something that is needed is missing. */
export async function nftPreflight(
  families: readonly Family[],
  { config, log, runner }: PreflightOptions,
): Promise<readonly FamilySupport[]> {
  const checks = await checkMode(config, families, systemMachine(config.junction, runner));
  report('nftables', checks, log);
  return families.map((family) => ({ family, answer: answerOf(checks, family), isStartable: true }));
}

export async function askForTables(
  family: Family,
  { config, runner }: PreflightOptions,
): Promise<FamilyAnswer> {
  return answerOf(await checkMode(config, [family], systemMachine(config.junction, runner)), family);
}

function answerOf(checks: readonly Check[], family: Family): FamilyAnswer {
  if (canServe(checks, family)) return { state: 'works' };
  const lack = checks.find(({ subject, state }) => state !== 'present' && subject.endsWith(family));
  return {
    state: 'absent',
    reason: lack?.found ?? 'the kernel has no nftables of this family',
    remedy: lack?.remedy ?? '',
  };
}
