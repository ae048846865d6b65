/** The machine that we run on, in the network namespace of this thread. */
import { accessSync, constants as access, existsSync, readFileSync } from 'node:fs';
import { release } from 'node:os';
import { join } from 'node:path';
import { isJunctionError } from '../../errors.ts';
import { IptablesClient } from '../iptables/client.ts';
import type { VariantChoice } from '../iptables/variant.ts';
import { type CommandRunner, run, timeLimited } from '../../system/processes.ts';
import { readSysctl } from '../../system/sysctl.ts';
import { DONE, type Machine, type SysctlLook, type Trial } from './machine.ts';
import { netlinkTrials } from './netlinkTrials.ts';

const MODPROBE_TIMEOUT_MS = 30_000;
const PROGRAM_TIMEOUT_MS = 30_000;

export interface SystemMachineOptions {
  readonly variant: VariantChoice;
  readonly hasIpv6: () => boolean;
  readonly runner?: CommandRunner | undefined;
  /** Instead of /proc/sys. */
  readonly sysctlRoot?: string | undefined;
}

export function systemMachine({
  variant,
  hasIpv6,
  runner = run,
  sysctlRoot = '/proc/sys',
}: SystemMachineOptions): Machine {
  const loads = new Map<string, Promise<Trial>>();
  return {
    ...netlinkTrials,
    kernelRelease: release(),
    run: timeLimited(runner, PROGRAM_TIMEOUT_MS),
    processStatus: () => readFileSync('/proc/self/status', 'utf8'),
    hasIpv6,
    hasModuleFolder: () => existsSync(join('/lib/modules', release())),
    loadModule: (name) => {
      const load = loads.get(name) ?? loadModule(name, runner);
      loads.set(name, load);
      return load;
    },
    openDoor: (family) => IptablesClient.open({ family, variant, runner }),
    sysctl: (name) => sysctl(name, sysctlRoot),
  };
}

async function loadModule(name: string, runner: CommandRunner): Promise<Trial> {
  try {
    const { code, stderr } = await runner(['modprobe', '--', name], { timeoutMs: MODPROBE_TIMEOUT_MS });
    return code === 0 ? DONE : { state: 'refused', reason: stderr.trim() };
  } catch (error) {
    if (isJunctionError(error)) return { state: 'refused', reason: error.message };
    throw error;
  }
}

function sysctl(name: string, root: string): SysctlLook {
  try {
    return {
      state: 'value',
      value: readSysctl(name, { root }),
      writable: isWritable(join(root, name)),
    };
  } catch (error) {
    if (isJunctionError(error, 'SYSCTL_MISSING')) return { state: 'absent' };
    if (isJunctionError(error)) return { state: 'unreadable', reason: error.message };
    throw error;
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, access.W_OK);
    return true;
  } catch {
    return false;
  }
}
