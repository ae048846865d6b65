/** The parts of a Kubernetes pod that decide what its containers may do and see. */
import { mkdirSync, existsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface Pod {
  readonly hostNetwork?: boolean;
  readonly securityContext: {
    readonly runAsUser: number;
    readonly runAsGroup: number;
    readonly seccompProfile: { readonly type: string };
  };
  readonly initContainers?: readonly PodContainer[];
  readonly containers: readonly PodContainer[];
  readonly volumes: readonly Volume[];
}

export interface PodContainer {
  readonly name: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly Variable[];
  readonly securityContext: {
    readonly allowPrivilegeEscalation: boolean;
    readonly readOnlyRootFilesystem: boolean;
    readonly capabilities: { readonly drop: readonly string[]; readonly add?: readonly string[] };
  };
  readonly volumeMounts?: readonly VolumeMount[];
}

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly fieldRef?: { readonly fieldPath: string } };
}

interface VolumeMount {
  readonly name: string;
  readonly mountPath: string;
  readonly readOnly?: boolean;
}

interface Volume {
  readonly name: string;
  readonly configMap?: { readonly name: string };
  readonly emptyDir?: object;
  readonly hostPath?: { readonly path: string; readonly type?: string };
}

export interface BindMount {
  readonly source: string;
  readonly destination: string;
  readonly readOnly: boolean;
}

/** What kubelet makes of the pod's volumes: `folder` has those that belong to the pod, and the node's /run. */
export function mountsOf(
  { volumes }: Pod,
  { volumeMounts = [] }: PodContainer,
  folder: string,
  configMap: Readonly<Record<string, string>>,
): readonly BindMount[] {
  return volumeMounts.map(({ name, mountPath, readOnly = false }) => {
    const volume = volumes.find((each) => each.name === name);
    if (!volume) throw new Error(`the pod has no volume ${name}`);
    return { source: sourceOf(volume, folder, configMap), destination: mountPath, readOnly };
  });
}

function sourceOf(volume: Volume, folder: string, configMap: Readonly<Record<string, string>>): string {
  const own = join(folder, 'volumes', volume.name);
  if (volume.hostPath) return hostPath(volume.hostPath, folder);
  mkdirSync(own, { recursive: true });
  if (volume.configMap)
    for (const [name, text] of Object.entries(configMap)) writeFileSync(join(own, name), text);
  else if (!volume.emptyDir) throw new Error(`volume ${volume.name} is of a kind that is not known here`);
  return own;
}

/** The machine's, but for /run, where a lock or a bus of the machine would be in the way. */
function hostPath({ path, type }: { readonly path: string; readonly type?: string }, folder: string): string {
  if (!path.startsWith('/run/') && existsSync(path)) return path;
  const own = join(folder, 'node', path);
  mkdirSync(type === 'FileOrCreate' ? dirname(own) : own, { recursive: true });
  if (type === 'FileOrCreate' && !existsSync(own)) writeFileSync(own, '');
  return own;
}

/** `NAME=value`, and what `$(NAME)` in arguments means. */
export function environmentOf(
  { env = [] }: PodContainer,
  nodeName: string,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    env.map(({ name, value, valueFrom }) => {
      const path = valueFrom?.fieldRef?.fieldPath;
      if (path !== undefined && path !== 'spec.nodeName')
        throw new Error(`the field ${path} is not known here`);
      return [name, path === undefined ? (value ?? '') : nodeName];
    }),
  );
}

export function expanded(words: readonly string[], env: Readonly<Record<string, string>>): readonly string[] {
  return words.map((word) => word.replaceAll(/\$\((\w+)\)/g, (text, name: string) => env[name] ?? text));
}
