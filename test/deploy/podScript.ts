/** What a container runtime makes of the pod, as a shell script, and what it is told. */
import { type Data, listAt, podOf, renderObjects } from './chart.ts';

/** In the place of /host: where nothing can be written but in /run, nothing can be mounted elsewhere. */
export const HOST = '/run/host';

interface PodScript {
  /** Its arguments are the program's. */
  readonly script: string;
  /** The container starts again; its init containers do not. */
  readonly restartScript: string;
  /** `CapEff` of the program, as in /proc/PID/status. */
  readonly capabilityMask: string;
}

export function podScript(values: Data): PodScript {
  const pod = podOf(renderObjects(values));
  const names = listAt(pod, 'containers', 0, 'securityContext', 'capabilities', 'add').map(String);
  const initArgs = listAt(pod, 'initContainers', 0, 'args').map(String);
  const initNames = listAt(pod, 'initContainers', 0, 'securityContext', 'capabilities', 'add').map(String);
  // With the words of the program that serves, and those that only the init container has.
  const own = [...initArgs.filter((arg) => arg === '--init-only'), `--sysctl-root=${HOST}`];
  const init = `${onlyThese(initNames)} "$@" ${own.join(' ')}`;
  const main = `exec ${onlyThese(names)} "$@"`;
  return {
    script: [MOUNTS, init, main].join('\n'),
    restartScript: [MOUNTS, main].join('\n'),
    capabilityMask: maskOf(names),
  };
}

/**
 * No file can be written but in /run (the checkout may be in /tmp), /proc/sys is read-only, and the node's
 * /proc/sys/net is mounted beside it.
 */
export const MOUNTS = `
set -eu
ip link set lo up
mount -t tmpfs tmpfs /run
mkdir -p ${HOST}/net /run/tmp
export TMPDIR=/run/tmp
mount --bind /proc/sys/net ${HOST}/net
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro,nosuid,nodev,noexec /proc/sys
mount -o remount,bind,ro /`;

export function onlyThese(names: readonly string[]): string {
  const kept = names.map((name) => `+${name.toLowerCase()}`);
  return `setpriv --no-new-privs --inh-caps=-all --bounding-set=${['-all', ...kept].join()}`;
}

/** From linux/capability.h. */
const BITS: Readonly<Record<string, number>> = { NET_ADMIN: 12, NET_RAW: 13 };

function maskOf(names: readonly string[]): string {
  const mask = names.reduce((sum, name) => sum + 2 ** (BITS[name] ?? Number.NaN), 0);
  return mask.toString(16).padStart(16, '0');
}
