/** A container of a pod, run by runc in the network that the command is started in. */
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { UnpackedImage } from './ociImage.ts';
import { type BindMount, environmentOf, expanded, mountsOf, type Pod, type PodContainer } from './pod.ts';
import { runtimeSpec } from './runtimeSpec.ts';

export interface ContainerOptions {
  readonly image: UnpackedImage;
  readonly pod: Pod;
  readonly container: PodContainer;
  readonly nodeName: string;
  /** The pod's own: containers of one pod share it. */
  readonly folder: string;
  readonly configMap?: Readonly<Record<string, string>>;
  /** In place of the pod's. */
  readonly args?: readonly string[];
  /** Besides the pod's. */
  readonly mounts?: readonly BindMount[];
}

/** runc is the first process of a process namespace: when it dies, however that may be, the container dies with it. */
const CGROUPS = '/sys/fs/cgroup';
const TRY_EVERY_MS = 50;
const MOST_TRIES = 1200;
const ISOLATED = ['unshare', '--pid', '--mount', '--fork', '--kill-child', '--mount-proc', '--'];

export class Container {
  readonly #id = `junction-${randomUUID()}`;
  readonly #bundle: string;
  readonly #runc: readonly string[];

  constructor(options: ContainerOptions) {
    const { image, pod, container, folder, configMap = {}, mounts = [] } = options;
    this.#bundle = join(folder, 'bundles', this.#id);
    mkdirSync(this.#bundle, { recursive: true });
    const env = environmentOf(container, options.nodeName);
    const spec = runtimeSpec({
      pod,
      container,
      image: image.config,
      args: expanded(options.args ?? container.args ?? [], env),
      env,
      mounts: [...mountsOf(pod, container, folder, configMap), ...mounts],
      rootfs: image.rootfs,
      cgroup: `/${this.#id}`,
    });
    writeFileSync(join(this.#bundle, 'config.json'), JSON.stringify(spec, undefined, 2));
    this.#runc = ['runc', '--root', join(folder, 'runc')];
  }

  /** Starts it, and runs until it ends. */
  get command(): readonly string[] {
    const run = [...this.#runc, 'run', '--bundle', this.#bundle, this.#id];
    return [...ISOLATED, ...run];
  }

  /** Runs a command in it; `pid` is that of the process that `command` became. */
  exec(pid: number, argv: readonly string[]): readonly string[] {
    return [...this.#entering(pid), ...this.#runc, 'exec', this.#id, ...argv];
  }

  kill(pid: number, signal: NodeJS.Signals): readonly string[] {
    return [...this.#entering(pid), ...this.#runc, 'kill', this.#id, signal];
  }

  /** Once it has ended, or is about to. A runc that was killed leaves its control groups. */
  async dispose(): Promise<void> {
    await removeCgroups(this.#id);
  }

  #entering(pid: number): readonly string[] {
    const [inner] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ');
    if (!inner) throw new Error(`process ${pid} runs no container`);
    return ['nsenter', '--target', inner, '--pid', '--mount', '--net', '--'];
  }
}

/** Of a pod whose folder is left over from a process that was killed. */
export async function disposePod(folder: string): Promise<void> {
  const bundles = join(folder, 'bundles');
  for (const id of existsSync(bundles) ? readdirSync(bundles) : []) await removeCgroups(id);
  rmSync(folder, { recursive: true, force: true });
}

async function removeCgroups(id: string): Promise<void> {
  for (const name of ['.', ...readdirSync(CGROUPS)]) await removeCgroup(join(CGROUPS, name, id));
}

/** The kernel keeps it until the last process in it is gone, which takes a moment. */
async function removeCgroup(path: string): Promise<void> {
  for (let tries = 0; existsSync(path); tries++) {
    try {
      rmdirSync(path);
    } catch (error) {
      if (tries >= MOST_TRIES) throw error;
      await sleep(TRY_EVERY_MS);
    }
  }
}
