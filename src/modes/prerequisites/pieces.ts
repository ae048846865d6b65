/** Pieces of the kernel that modes lean on: offering them, loading modules where they are refused, and what brings them. */
import type { Family } from '../../model/ip.ts';
import { absent, type Check, DONE, type Need, present, type Trial } from './check.ts';
import type { Machine } from './machine.ts';

/** A row of a mode's table: a piece of its rules. */
export interface KernelPiece {
  /** `match recent` */
  readonly name: string;
  /** That bring it; `ipv*` and `ipt_` stand for those of the family. */
  readonly modules: readonly string[];
  readonly needed: Need;
  /** The first kernel that has it, without what distributions brought to older ones. */
  readonly since?: string | undefined;
}

export function kernelPiece<Name extends string>(
  name: Name,
  modules: string,
  needed: Need = 'always',
  since?: string,
): KernelPiece & { readonly name: Name } {
  return { name, modules: modules.split(' '), needed, since };
}

/** Makes something in the kernel, and removes it again. */
type Offer = () => Trial | Promise<Trial>;
type Modules = Pick<Machine, 'kernelRelease' | 'hasModuleFolder' | 'loadModule'>;

export function modulesOf({ modules }: KernelPiece, family: Family): readonly string[] {
  if (family === 'IPv4') return modules.map((module) => module.replace('*', '4'));
  return modules.map((module) => module.replace('*', '6').replace(/^ipt_/, 'ip6t_'));
}

export function pieceRemedy(machine: Modules, row: KernelPiece, families: readonly Family[]): string {
  const modules = [...new Set(families.flatMap((family) => modulesOf(row, family)))];
  const kernel = row.since ? `It came with Linux ${row.since}; this is ${machine.kernelRelease}. ` : '';
  return `${kernel}Kernel module${modules.length > 1 ? 's' : ''} ${modules.join(', ')}. ${moduleRemedy(machine, modules)}`;
}

/** What to do about modules that are missing. */
export function moduleRemedy(machine: Modules, modules: readonly string[]): string {
  const load = `modprobe ${modules.length > 1 ? '-a ' : ''}${modules.join(' ')}`;
  const packages = `linux-modules-extra-${machine.kernelRelease} (Ubuntu) or kernel-modules-extra (RHEL, Fedora) may have it`;
  return machine.hasModuleFolder()
    ? `${load}. If it is not found, ${packages}; else this kernel is built without it.`
    : `On the node: ${load}. Or mount the node's /lib/modules into the container, read-only, and let Junction load it. If it is not found, ${packages}; else that kernel is built without it.`;
}

/** Where the offer is refused, loads the modules and repeats it. The reason is the kernel's and modprobe's. */
export async function offerWithModules(
  machine: Modules,
  modules: readonly string[],
  offer: Offer,
  whenLoaded = '',
): Promise<Trial> {
  const first = await offer();
  if (first.state === 'done') return first;
  const failures: string[] = [];
  for (const module of modules) {
    const load = await machine.loadModule(module);
    if (load.state === 'refused') failures.push(`; ${load.reason}`);
  }
  const second = await offer();
  if (second.state === 'done') return second;
  return { ...second, reason: second.reason + (failures.length > 0 ? failures.join('') : whenLoaded) };
}

export function offerWithModule(machine: Modules, module: string, offer: Offer): Promise<Trial> {
  return offerWithModules(machine, [module], offer, `, though the module ${module} is loaded`);
}

/** A module, and what is offered to see whether the kernel has it. */
interface ModuleOffer {
  readonly module: string;
  readonly offer: Offer;
  readonly subject?: string;
  readonly needed?: Need;
  readonly found: string;
  /** Stands before the reason of a refusal. */
  readonly lack?: string;
  /** Stands before how to load the module. */
  readonly remedy?: string;
}

export async function moduleCheck(machine: Modules, row: ModuleOffer): Promise<Check> {
  const { module, subject = `kernel module ${module}`, needed = 'always', lack = '', remedy = '' } = row;
  const trial = await offerWithModule(machine, module, row.offer);
  if (trial.state === 'done') return present(subject, needed, row.found);
  return absent(subject, needed, lack + trial.reason, remedy + moduleRemedy(machine, [module]));
}

/** Connection tracking by netlink, which every mode uses. */
export function conntrackCheck(machine: Machine, families: readonly Family[]): Promise<Check> {
  return moduleCheck(machine, {
    module: 'nf_conntrack_netlink',
    offer: () => {
      for (const family of families) {
        const trial = machine.tryConntrack(family);
        if (trial.state === 'refused') return { ...trial, reason: `(${family}): ${trial.reason}` };
      }
      return DONE;
    },
    needed: 'for forgetting UDP and SCTP flows to endpoints that are gone',
    found: 'the table of flows can be read',
    lack: 'the table of flows cannot be read ',
  });
}
