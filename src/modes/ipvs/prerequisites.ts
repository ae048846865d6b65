/** What IPVS mode needs. All of it is spoken to by netlink: the programs ipset and ipvsadm need not be there. */
import { type Check, unknown } from '../prerequisites/check.ts';
import { conntrackCheck } from '../prerequisites/conntrackNetlink.ts';
import { dummyLinkCheck } from '../prerequisites/dummyLink.ts';
import { PHYSDEV_FOR_ALL } from '../prerequisites/extensions.ts';
import { ruleChecks } from '../prerequisites/iptables.ts';
import { ipvsChecks } from '../prerequisites/ipvs.ts';
import type { Machine, TrialDoor } from '../prerequisites/machine.ts';
import { setTypeChecks } from '../prerequisites/setTypes.ts';
import type { PreflightSettings } from '../prerequisites/settings.ts';
import { sysctlChecks, type WantedSysctl } from '../prerequisites/sysctls.ts';
import { ipvsTrialRules } from '../prerequisites/trialRules.ts';

export async function ipvsModeChecks(
  machine: Machine,
  clients: readonly TrialDoor[],
  settings: PreflightSettings,
): Promise<readonly Check[]> {
  const families = clients.map(({ family }) => family);
  const sets = await setTypeChecks(machine, families);
  // Before IPVS: every kernel loads it with the match ipvs, those from before 2022 not when its netlink family is asked
  // for; and a container may not load modules itself.
  const rules = await ruleChecks(machine, clients, {
    rulesOf: ipvsTrialRules,
    sets: true,
    counters: false,
    physdev: PHYSDEV_FOR_ALL,
  });
  const ipvs = await ipvsChecks(machine, settings.scheduler);
  // These settings are there only while IPVS is.
  const hasIpvs = ipvs.every(({ state, subject }) => state === 'present' || subject.includes('scheduler'));
  return [
    ...ipvs,
    await dummyLinkCheck(machine),
    ...sets,
    ...rules,
    await conntrackCheck(machine, families),
    ...(hasIpvs ? [] : [untriedSysctls]),
    ...sysctlChecks(machine, sysctls(settings, machine.kernelRelease, hasIpvs)),
  ];
}

const untriedSysctls = unknown(
  'sysctls net.ipv4.vs.*',
  'always',
  'not there without IPVS',
  'Check again with ip_vs loaded.',
);

function sysctls(
  { strictArp }: PreflightSettings,
  kernelRelease: string,
  hasIpvs: boolean,
): readonly WantedSysctl[] {
  const setting = (name: string, value: number): WantedSysctl => ({ name, value, needed: 'always' });
  const ipvs = [
    setting('net/ipv4/vs/conntrack', 1),
    setting('net/ipv4/vs/expire_nodest_conn', 1),
    setting('net/ipv4/vs/expire_quiescent_template', 1),
    ...(reusesConnections(kernelRelease) ? [setting('net/ipv4/vs/conn_reuse_mode', 0)] : []),
  ].map((each) => ({ ...each, module: 'ip_vs' }));
  return [
    ...(hasIpvs ? ipvs : []),
    setting('net/ipv4/ip_forward', 1),
    ...(strictArp
      ? [setting('net/ipv4/conf/all/arp_ignore', 1), setting('net/ipv4/conf/all/arp_announce', 2)]
      : []),
  ];
}

/** From 4.1 to 5.8 a reused client port costs a second unless this is 0; before, it is not there; since, it is mended. */
function reusesConnections(kernelRelease: string): boolean {
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(kernelRelease) ?? [];
  const version = Number(major) * 1000 + Number(minor);
  return version >= 4001 && version < 5009;
}
