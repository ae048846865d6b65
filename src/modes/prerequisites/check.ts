/** The result of a check of the machine, what the daemon does with it, and the checks that several modes share. */
import { readFileSync } from 'node:fs';
import { JunctionError } from '../../errors.ts';
import type { Log } from '../../log/log.ts';
import type { Family } from '../../model/ip.ts';
import type { Machine } from './machine.ts';

export type CheckState =
  | 'present'
  | 'missing'
  /** It could not be tried. */
  | 'unknown'
  /** The mode runs, but what it is needed for does not work. */
  | 'degraded';

/** `always`: without it the mode cannot run. */
export type Need = 'always' | `for ${string}`;

export interface Check {
  /** `kernel module ip_vs` */
  readonly subject: string;
  readonly state: CheckState;
  readonly needed: Need;
  readonly found: string;
  /** Empty where nothing is wrong. */
  readonly remedy: string;
}

export type Trial =
  | { readonly state: 'done' }
  /** `reason`: the kernel's error name (`EOPNOTSUPP`) or a program's message. */
  | { readonly state: 'refused'; readonly reason: string };

export const DONE: Trial = { state: 'done' };

/** `unclear`: nothing that is needed is known to be missing, but something of it could not be tried. */
type Readiness = 'yes' | 'no' | 'unclear';

export function present(subject: string, needed: Need, found: string): Check {
  return { subject, state: 'present', needed, found, remedy: '' };
}

/** `missing` or `degraded`, by what it is needed for. */
export function absent(subject: string, needed: Need, found: string, remedy: string): Check {
  return { subject, state: needed === 'always' ? 'missing' : 'degraded', needed, found, remedy };
}

export function unknown(subject: string, needed: Need, found: string, remedy: string): Check {
  return { subject, state: 'unknown', needed, found, remedy };
}

export function readinessOf(checks: readonly Check[]): Readiness {
  if (checks.some(({ state }) => state === 'missing')) return 'no';
  return checks.some(({ state, needed }) => state === 'unknown' && needed === 'always') ? 'unclear' : 'yes';
}

/** `ipvs mode cannot run here: 2 things are missing.` */
export function summary(mode: string, checks: readonly Check[]): string {
  const count = (state: CheckState): number => checks.filter((check) => check.state === state).length;
  const beginnings: Readonly<Record<Readiness, string>> = {
    yes: `${mode} mode can run here`,
    no: `${mode} mode cannot run here: ${things(count('missing'), 'is', 'are')} missing`,
    unclear: `whether ${mode} mode can run here is not clear`,
  };
  const rest = [
    ...(count('degraded') > 0 ? [`${things(count('degraded'), 'is', 'are')} only partly there`] : []),
    ...(count('unknown') > 0 ? [`${things(count('unknown'), 'was', 'were')} not tried`] : []),
  ];
  return `${[beginnings[readinessOf(checks)], ...rest].join('; ')}.`;
}

function things(count: number, one: string, many: string): string {
  return count === 1 ? `1 thing ${one}` : `${count} things ${many}`;
}

/** Warns of what is degraded. Throws when something that is needed is missing. */
export function report(mode: string, checks: readonly Check[], log: Pick<Log, 'warn' | 'verbose'>): void {
  const readiness = readinessOf(checks);
  for (const { subject, state, needed, found, remedy } of checks) {
    const fields = { what: subject, found, needed, whatToDo: remedy };
    if (state === 'degraded') log.warn('The machine lacks something that is needed for a part', fields);
    // While something is missing, what could not be tried because of that is noise.
    else if (state === 'unknown' && needed === 'always' && readiness === 'unclear')
      log.warn('Could not check something that is needed', fields);
    else log.verbose(2, 'Checked', { ...fields, state });
  }
  if (readiness !== 'no') return;
  const missing = checks.filter(({ state }) => state === 'missing');
  throw new JunctionError('PREFLIGHT_FAILED', summary(mode, missing).replace(/\.$/, ''), {
    detail: missing.map(({ subject, found, remedy }) => `- ${subject}: ${found}\n  ${remedy}`).join('\n'),
    hint: `Bring what is missing; \`junction check --proxy-mode=${mode}\` shows it again.`,
  });
}

/* Checks that several modes share: capabilities, kernel modules, connection tracking, sysctls. */

/** linux/capability.h */
const CAPABILITY_BITS = { NET_ADMIN: 12n, SYS_MODULE: 16n } as const;

export function readProcessStatus(): string {
  return readFileSync('/proc/self/status', 'utf8');
}

export function hasCapability(processStatus: string, capability: keyof typeof CAPABILITY_BITS): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(processStatus)?.[1];
  return effective !== undefined && ((BigInt(`0x${effective}`) >> CAPABILITY_BITS[capability]) & 1n) === 1n;
}

export function capabilityCheck(processStatus: string): Check {
  const subject = 'capability NET_ADMIN';
  if (!hasCapability(processStatus, 'NET_ADMIN')) {
    return absent(
      subject,
      'always',
      'this process may not change the network',
      'Run as root; in a container, privileged or with the capability NET_ADMIN (securityContext.capabilities.add).',
    );
  }
  const loads = hasCapability(processStatus, 'SYS_MODULE')
    ? 'may change the network and load kernel modules'
    : 'may change the network; not load kernel modules, which matters only if one is missing';
  return present(subject, 'always', loads);
}

/** Comes first: without it every program and every socket is refused, each with another message. */
export function requireNetAdmin(): void {
  if (hasCapability(readProcessStatus(), 'NET_ADMIN')) return;
  throw new JunctionError(
    'NOT_PERMITTED',
    'this process may not change the network: it lacks the capability NET_ADMIN',
  );
}

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
