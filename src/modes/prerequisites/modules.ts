/** Kernel modules: loading one that the kernel does not load by itself, and words for how to get one. */
import type { Machine, Trial } from './machine.ts';

type Modules = Pick<Machine, 'kernelRelease' | 'hasModuleFolder' | 'loadModule'>;

/** What to do about modules that are missing. */
export function moduleRemedy(machine: Modules, modules: readonly string[]): string {
  const load = `modprobe ${modules.length > 1 ? '-a ' : ''}${modules.join(' ')}`;
  const packages = `linux-modules-extra-${machine.kernelRelease} (Ubuntu) or kernel-modules-extra (RHEL, Fedora) may have it`;
  return machine.hasModuleFolder()
    ? `${load}. If it is not found, ${packages}; else this kernel is built without it.`
    : `On the node: ${load}. Or mount the node's /lib/modules into the container, read-only, and let Junction load it. If it is not found, ${packages}; else that kernel is built without it.`;
}

/** Tries; where that is refused, loads the module and tries again. The refusal tells of both. */
export async function tryWithModule(machine: Modules, module: string, attempt: () => Trial): Promise<Trial> {
  const first = attempt();
  if (first.state === 'done') return first;
  const load = await machine.loadModule(module);
  if (load.state === 'refused') return { ...first, reason: `${first.reason}; ${load.reason}` };
  const second = attempt();
  return second.state === 'done'
    ? second
    : { ...second, reason: `${second.reason}, though the module ${module} is loaded` };
}
