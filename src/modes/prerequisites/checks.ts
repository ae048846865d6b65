/** Checks that several modes share: kernel modules, sysctls, connection tracking. */
import type { Family } from '../../model/ip.ts';
import { absent, type Check, DONE, type Need, present, type Trial, unknown } from './check.ts';
import type { Machine } from './machine.ts';

type Modules = Pick<Machine, 'kernelRelease' | 'hasModuleFolder' | 'loadModule'>;

/** In `ipv*` and `ipt_X`, the family's module is meant. */
export function familyModules(modules: string, family: Family): readonly string[] {
  const names = modules.split(' ');
  if (family === 'IPv4') return names.map((name) => name.replace('*', '4'));
  return names.map((name) => name.replace('*', '6').replace(/^ipt_/, 'ip6t_'));
}

export function moduleRemedy(machine: Modules, modules: readonly string[], since?: string): string {
  const kernel = since ? `The mode needs Linux ${since}; this is ${machine.kernelRelease}. ` : '';
  const load = `modprobe ${modules.length > 1 ? '-a ' : ''}${modules.join(' ')}`;
  const packages = `linux-modules-extra-${machine.kernelRelease} (Ubuntu) or kernel-modules-extra (RHEL, Fedora) may have it`;
  return machine.hasModuleFolder()
    ? `${kernel}${load}. If it is not found, ${packages}; else this kernel is built without it.`
    : `${kernel}On the node: ${load}. Or mount the node's /lib/modules into the container, read-only, and let Junction load it. If it is not found, ${packages}; else that kernel is built without it.`;
}

/** Returns why modprobe failed, for the end of a message. */
export async function loadModules(machine: Modules, modules: readonly string[]): Promise<string> {
  let failures = '';
  for (const module of modules) {
    const load = await machine.loadModule(module);
    if (load.state === 'refused') failures += `; ${load.reason}`;
  }
  return failures;
}

interface ModuleOffer {
  readonly module: string;
  /** Makes something of the module's in the kernel, and removes it again. */
  readonly offer: () => Trial | Promise<Trial>;
  readonly subject?: string;
  readonly needed?: Need;
  readonly found: string;
  /** Precedes the reason of a refusal. */
  readonly lack?: string;
  /** Precedes how to load the module. */
  readonly remedy?: string;
}

export async function moduleCheck(machine: Modules, row: ModuleOffer): Promise<Check> {
  const { module, subject = `kernel module ${module}`, needed = 'always', lack = '', remedy = '' } = row;
  if ((await row.offer()).state === 'done') return present(subject, needed, row.found);
  const failures = await loadModules(machine, [module]);
  const trial = await row.offer();
  if (trial.state === 'done') return present(subject, needed, row.found);
  return absent(subject, needed, lack + trial.reason + failures, remedy + moduleRemedy(machine, [module]));
}

/** Connection tracking by netlink, which every mode uses. */
export function conntrackCheck(machine: Machine, families: readonly Family[]): Promise<Check> {
  const refusals = (): readonly Trial[] =>
    families.map((family) => machine.tryConntrack(family)).filter(({ state }) => state === 'refused');
  return moduleCheck(machine, {
    module: 'nf_conntrack_netlink',
    offer: () => refusals()[0] ?? DONE,
    needed: 'for forgetting UDP and SCTP flows to endpoints that are gone',
    found: 'the table of flows can be read',
    lack: 'the table of flows cannot be read: ',
  });
}

interface WantedSysctl {
  /** `net/ipv4/ip_forward` */
  readonly name: string;
  readonly value: number;
  readonly needed: Need;
}

/** One row for those that are right. */
export function sysctlChecks(machine: Machine, wanted: readonly WantedSysctl[]): readonly Check[] {
  const checks = wanted.map((each) => sysctlCheck(machine, each));
  const good = checks.filter(({ state }) => state === 'present');
  const [first] = good;
  if (!first || good.length === 1) return checks;
  const found = good.map((check) => `${check.subject.replace('sysctl ', '')} ${check.found}`).join('; ');
  return [present('sysctls', first.needed, found), ...checks.filter((check) => !good.includes(check))];
}

function sysctlCheck(machine: Machine, { name, value, needed }: WantedSysctl): Check {
  // As the program sysctl prints it; none of these names has a dot of its own.
  const dotted = name.replaceAll('/', '.');
  const subject = `sysctl ${dotted}`;
  const look = machine.sysctl(name);
  if (look.state === 'absent')
    return absent(subject, needed, 'the kernel has no such setting', 'This kernel is built without it.');
  if (look.state === 'unreadable')
    return unknown(subject, needed, `cannot be read: ${look.reason}`, 'Run as root, with /proc mounted.');
  if (look.value === String(value)) return present(subject, needed, `is ${value}`);
  if (look.writable) return present(subject, needed, `is ${look.value}, and can be set to ${value}`);
  const found = `is ${look.value}, must be ${value}, and may not be written`;
  const remedy = `On the node: sysctl -w ${dotted}=${value}. In a container: mount the node's /proc/sys/net, writable, and name the place (--sysctl-root).`;
  return absent(subject, needed, found, remedy);
}
