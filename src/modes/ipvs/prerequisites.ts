/** What IPVS mode needs. All of it is asked for by netlink: the programs ipset and ipvsadm need not be installed. */
import type { Family } from '../../model/ip.ts';
import { IPSET_TYPES } from '../../netlink/ipset.ts';
import { ruleChecks } from '../iptables/prerequisites.ts';
import {
  absent,
  type Check,
  DONE,
  type PreflightSettings,
  present,
  type Trial,
  unknown,
} from '../prerequisites/check.ts';
import type { Machine, TrialClient } from '../prerequisites/machine.ts';
import { conntrackCheck, moduleCheck, moduleRemedy, offerWithModule } from '../prerequisites/pieces.ts';
import { sysctlChecks, type WantedSysctl } from '../prerequisites/sysctls.ts';
import { DEVICE } from './rules/client.ts';
import { ipvsLayout } from './rules/rules.ts';
import { SET_IDS } from './rules/sets.ts';
import { ipvsSysctls } from './settings.ts';

export async function ipvsModeChecks(
  machine: Machine,
  clients: readonly TrialClient[],
  settings: PreflightSettings,
): Promise<readonly Check[]> {
  const families = clients.map(({ family }) => family);
  const sets = await setTypeChecks(machine, families);
  // Before IPVS: every kernel loads it with the match ipvs, those from before 2022 not when its netlink family is asked
  // for; and a container may not load modules itself.
  const rules = await ruleChecks(machine, clients, {
    layout: ipvsLayout,
    localhostNodePorts: false,
    counters: false,
    physdev: undefined,
    sets: SET_IDS,
  });
  const ipvs = await moduleCheck(machine, {
    module: 'ip_vs',
    offer: () => machine.findIpvs(),
    found: 'the kernel has IPVS',
  });
  const hasIpvs = ipvs.state === 'present';
  return [
    ipvs,
    await schedulerCheck(machine, settings.scheduler, hasIpvs),
    await deviceCheck(machine),
    ...sets,
    ...rules,
    await conntrackCheck(machine, families),
    ...(hasIpvs ? [] : [unknown('sysctls net.ipv4.vs.*', 'always', 'not there without IPVS', CHECK_AGAIN)]),
    ...sysctlChecks(machine, sysctls(settings, machine.kernelRelease, hasIpvs)),
  ];
}

const CHECK_AGAIN = 'Check again with ip_vs loaded.';

async function schedulerCheck(machine: Machine, scheduler: string, hasIpvs: boolean): Promise<Check> {
  const subject = `IPVS scheduler ${scheduler}`;
  if (!hasIpvs) return unknown(subject, 'always', 'not tried without IPVS', CHECK_AGAIN);
  // A virtual server that has it proves more than a trial, and nothing needs to be made.
  if ((await machine.schedulersInUse()).includes(scheduler)) return present(subject, 'always', 'in use');
  return moduleCheck(machine, {
    module: `ip_vs_${scheduler}`,
    offer: () => machine.tryScheduler(scheduler),
    subject,
    found: 'a trial virtual server took it',
    lack: 'a virtual server with it is refused: ',
    remedy: 'Check the spelling of --ipvs-scheduler (rr, wrr, lc, sh, mh …). ',
  });
}

/** The dummy device that service addresses are bound to. */
async function deviceCheck(machine: Machine): Promise<Check> {
  const link = await machine.findDevice();
  if (link?.kind === 'dummy') return present(`device ${DEVICE}`, 'always', 'it is there, of kind dummy');
  if (link) {
    return absent(
      `device ${DEVICE}`,
      'always',
      `it is there, and is no dummy device but ${link.kind ?? 'hardware'}`,
      `Give that device another name, or delete it: ip link delete ${DEVICE}. Junction makes its own.`,
    );
  }
  return moduleCheck(machine, {
    module: 'dummy',
    offer: () => machine.tryLink('dummy'),
    found: 'a trial device could be made',
    lack: 'no dummy device can be made: ',
  });
}

async function setTypeChecks(machine: Machine, families: readonly Family[]): Promise<readonly Check[]> {
  const accepted: string[] = [];
  const refused: string[] = [];
  const modules: string[] = [];
  let reason: string | undefined;
  for (const type of IPSET_TYPES) {
    let module = '';
    const offer = async (): Promise<Trial> => {
      for (const family of families) {
        const support = await machine.setType(type, family);
        if (support.state === 'present') continue;
        module = support.module;
        return { state: 'refused', reason: support.reason };
      }
      return DONE;
    };
    const first = await offer(); // which names the module
    const trial = first.state === 'done' ? first : await offerWithModule(machine, module, offer);
    (trial.state === 'done' ? accepted : refused).push(type);
    if (trial.state === 'done') continue;
    modules.push(module);
    reason ??= trial.reason;
  }
  const there = accepted.length > 0 ? [present('ipset types', 'always', accepted.join('; '))] : [];
  if (reason === undefined) return there;
  const subject = `kernel module${modules.length > 1 ? 's' : ''} ${modules.join(', ')}`;
  const found = `no sets of the type ${refused.join('; ')}: ${reason}`;
  return [...there, absent(subject, 'always', found, moduleRemedy(machine, modules))];
}

/** Those of IPVS are there only while it is. */
function sysctls(
  { strictArp: strictARP }: PreflightSettings,
  kernel: string,
  hasIpvs: boolean,
): readonly WantedSysctl[] {
  return ipvsSysctls({ strictARP, kernel }).flatMap(([name, value]) => {
    const module = name.startsWith('net/ipv4/vs/') ? 'ip_vs' : undefined;
    return module && !hasIpvs ? [] : [{ name, value, needed: 'always', module }];
  });
}
