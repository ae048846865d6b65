/** What the IPVS mode needs. Everything is asked by netlink: the programs ipset and ipvsadm need not be installed. */
import type { ValidConfig } from '../../config/effective.ts';
import { toSettings } from '../../config/settings.ts';
import type { Family } from '../../model/ip.ts';
import { IPSET_TYPES } from '../../netlink/ipset.ts';
import { ruleChecks } from '../iptables/prerequisites.ts';
import {
  absent,
  type Check,
  DONE,
  present,
  type Trial,
  conntrackCheck,
  moduleCheck,
  sysctlChecks,
} from '../prerequisites/check.ts';
import type { Machine, TrialClient } from '../prerequisites/machine.ts';
import { DEVICE } from './rules/client.ts';
import { moduleOf } from './rules/outcomes.ts';
import { ipvsLayout } from './rules/rules.ts';
import { ipvsSysctls } from './settings.ts';

export async function ipvsModeChecks(
  machine: Machine,
  clients: readonly TrialClient[],
  config: ValidConfig,
): Promise<readonly Check[]> {
  const families = clients.map(({ family }) => family);
  const sets = await setTypeCheck(machine, families);
  // Before IPVS: every kernel loads it with the match ipvs, those from before 2022 not when its netlink family is asked
  // for; and a container may not load modules itself.
  const rules = await ruleChecks(machine, clients, { layout: ipvsLayout, localhostNodePorts: false });
  return [
    ...(await ipvsChecks(machine, config)),
    await deviceCheck(machine),
    sets,
    ...rules,
    await conntrackCheck(machine, families),
  ];
}

/** The sysctls of IPVS, and whether it knows the scheduler, can be asked only while it is there. */
async function ipvsChecks(machine: Machine, config: ValidConfig): Promise<readonly Check[]> {
  const ipvs = await moduleCheck(machine, {
    module: 'ip_vs',
    offer: () => machine.findIpvs(),
    found: 'the kernel has IPVS',
  });
  if (ipvs.state !== 'present') return [ipvs];
  const { scheduler } = toSettings(config, config.hostnameOverride);
  const { strictARP } = config.ipvs;
  const sysctls = ipvsSysctls({ strictARP, kernel: machine.kernelRelease }).map(([name, value]) => {
    return { name, value, needed: 'always' } as const;
  });
  return [
    ipvs,
    await moduleCheck(machine, {
      module: `ip_vs_${scheduler}`,
      offer: () => machine.tryScheduler(scheduler),
      subject: `IPVS scheduler ${scheduler}`,
      found: 'a trial virtual server took it',
      lack: 'a virtual server with it is refused: ',
      remedy: 'Check the spelling of --ipvs-scheduler (rr, wrr, lc, sh, mh …). ',
    }),
    ...sysctlChecks(machine, sysctls),
  ];
}

/** The dummy device that service addresses are bound to. */
async function deviceCheck(machine: Machine): Promise<Check> {
  const link = await machine.findDevice();
  const subject = `device ${DEVICE}`;
  if (link?.kind === 'dummy') return present(subject, 'always', 'it is there, of kind dummy');
  if (link) {
    const found = `it is there, and is no dummy device but ${link.kind ?? 'hardware'}`;
    const remedy = `Give that device another name, or delete it: ip link delete ${DEVICE}. Junction makes its own.`;
    return absent(subject, 'always', found, remedy);
  }
  return moduleCheck(machine, {
    module: 'dummy',
    offer: () => machine.tryLink('dummy'),
    found: 'a trial device could be made',
    lack: 'no dummy device can be made: ',
  });
}

/** Names the first type that is refused. */
async function setTypeCheck(machine: Machine, families: readonly Family[]): Promise<Check> {
  for (const type of IPSET_TYPES) {
    const offer = async (): Promise<Trial> => {
      for (const family of families) {
        const trial = await machine.setType(type, family);
        if (trial.state === 'refused') return trial;
      }
      return DONE;
    };
    const words = { found: type, lack: `no sets of the type ${type}: ` };
    const check = await moduleCheck(machine, { module: moduleOf(type), offer, ...words });
    if (check.state !== 'present') return check;
  }
  return present('ipset types', 'always', IPSET_TYPES.join('; '));
}
