/** What a container runtime hands to runc for one container of a pod (config.json, OCI runtime specification). */
import { existsSync } from 'node:fs';
import type { ImageConfig } from './ociImage.ts';
import type { BindMount, Pod, PodContainer } from './pod.ts';
import { defaultSeccomp } from './seccomp.ts';

export interface RuntimeSpecInput {
  readonly pod: Pod;
  readonly container: PodContainer;
  readonly image: ImageConfig;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly mounts: readonly BindMount[];
  readonly rootfs: string;
  readonly cgroup: string;
}

export function runtimeSpec(input: RuntimeSpecInput): object {
  const { pod, container, image, args, env, mounts, rootfs, cgroup } = input;
  const { runAsUser: uid, runAsGroup: gid, seccompProfile } = pod.securityContext;
  const { securityContext } = container;
  if (seccompProfile.type !== 'RuntimeDefault')
    throw new Error(`seccomp profile ${seccompProfile.type} is not known here`);
  if (!pod.hostNetwork) throw new Error('the pod must be on the network of its host');
  const capabilities = capabilitiesOf(container);
  return {
    ociVersion: '1.0.2',
    process: {
      user: { uid, gid },
      args: [...(container.command ?? image.Entrypoint), ...args],
      env: [...image.Env, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)],
      cwd: image.WorkingDir,
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
      noNewPrivileges: !securityContext.allowPrivilegeEscalation,
    },
    root: { path: rootfs, readonly: securityContext.readOnlyRootFilesystem },
    mounts: [...OWN_MOUNTS, ...hostFiles(), ...mounts.map(bind)],
    linux: {
      cgroupsPath: cgroup,
      // Not `network`: it is the one that runc is started in, as with hostNetwork.
      namespaces: ['pid', 'ipc', 'uts', 'mount'].map((type) => ({ type })),
      seccomp: defaultSeccomp(capabilities),
      maskedPaths: MASKED,
      readonlyPaths: READ_ONLY,
    },
  };
}

function capabilitiesOf({ securityContext }: PodContainer): readonly string[] {
  const { drop, add = [] } = securityContext.capabilities;
  if (!drop.includes('ALL')) throw new Error('the container must drop all capabilities first');
  return add.map((name) => `CAP_${name}`);
}

/** As containerd makes them for every container. */
const OWN_MOUNTS = [
  { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'noexec', 'nodev'] },
  {
    destination: '/dev',
    type: 'tmpfs',
    source: 'tmpfs',
    options: ['nosuid', 'strictatime', 'mode=755', 'size=65536k'],
  },
  {
    destination: '/dev/pts',
    type: 'devpts',
    source: 'devpts',
    options: ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620'],
  },
  {
    destination: '/dev/shm',
    type: 'tmpfs',
    source: 'shm',
    options: ['nosuid', 'noexec', 'nodev', 'size=65536k'],
  },
  { destination: '/sys', type: 'sysfs', source: 'sysfs', options: ['nosuid', 'noexec', 'nodev', 'ro'] },
];

const MASKED = [
  '/proc/acpi',
  '/proc/asound',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/sched_debug',
  '/proc/scsi',
  '/sys/firmware',
];

const READ_ONLY = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'];

/** With `dnsPolicy: Default` the node's own. */
function hostFiles(): readonly object[] {
  const files = ['/etc/hosts', '/etc/resolv.conf'].filter((path) => existsSync(path));
  return files.map((path) => bind({ source: path, destination: path, readOnly: true }));
}

function bind({ source, destination, readOnly }: BindMount): object {
  return { destination, type: 'bind', source, options: ['rbind', 'rprivate', readOnly ? 'ro' : 'rw'] };
}
