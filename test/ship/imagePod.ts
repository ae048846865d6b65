/** The chart's pod, run from the image on node1 of the lab as container runtimes run it. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Host } from '../../lab/host.ts';
import type { CommandResult } from '../../lab/protocol.ts';
import { Container } from '../../lab/container/container.ts';
import type { UnpackedImage } from '../../lab/container/ociImage.ts';
import type { BindMount, Pod, PodContainer } from '../../lab/container/pod.ts';
import { at, type Data, merge, objectOf, podOf, REQUIRED, renderObjects } from '../deploy/chart.ts';
import { eventually } from '../e2e/support/eventually.ts';

interface ImagePodOptions {
  readonly host: Host;
  readonly image: UnpackedImage;
  readonly folder: string;
  readonly values: Data;
  readonly mounts: readonly BindMount[];
}

interface Running {
  readonly container: Container;
  readonly child: ChildProcess;
  log: string;
}

export class ImagePod {
  readonly #options: ImagePodOptions;
  readonly #configMap: Readonly<Record<string, string>>;
  readonly pod: Pod;
  readonly #containers: Container[] = [];
  #main: Running | undefined;

  constructor(options: ImagePodOptions) {
    this.#options = options;
    const objects = renderObjects(merge(REQUIRED, options.values));
    this.pod = podOf(objects) as Pod;
    this.#configMap = at(objectOf(objects, 'ConfigMap'), 'data') as Readonly<Record<string, string>>;
  }

  get log(): string {
    return this.#main?.log ?? '';
  }

  /** One of the pod's containers, with other words where they are given, until it ends. */
  async run(container: PodContainer, change: Partial<PodContainer> = {}): Promise<CommandResult> {
    return this.#options.host.exec(this.#make({ ...container, ...change }).command);
  }

  async init(): Promise<readonly CommandResult[]> {
    const results = [];
    for (const container of this.pod.initContainers ?? []) results.push(await this.run(container));
    return results;
  }

  get container(): PodContainer {
    const [container] = this.pod.containers;
    if (!container) throw new Error('the pod has no container');
    return container;
  }

  /** Starts the pod's container, and waits until both families are served. */
  async start(change: Partial<PodContainer> = {}): Promise<void> {
    const container = this.#make({ ...this.container, ...change });
    const child = this.#options.host.spawn(container.command, { stdio: ['ignore', 'pipe', 'pipe'] });
    const main = { container, child, log: '' };
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => {
        main.log += chunk.toString();
      });
    this.#main = main;
    await eventually('serving', () => {
      if (child.exitCode !== null) throw new Error(`it ended:\n${main.log}`);
      return ['IPv4', 'IPv6'].every((family) => main.log.includes(`"Serving" ipFamily="${family}"`));
    });
  }

  /** `runc exec` in the pod's container. */
  async exec(...argv: readonly string[]): Promise<CommandResult> {
    const { container, child } = this.#running();
    return this.#options.host.exec(container.exec(child.pid ?? 0, argv));
  }

  /** As kubelet stops it. Returns its exit code. */
  async stop(): Promise<number | null> {
    const { container, child } = this.#running();
    const exited = once(child, 'exit');
    await this.#options.host.run(container.kill(child.pid ?? 0, 'SIGTERM'));
    await exited;
    this.#main = undefined;
    return child.exitCode;
  }

  async dispose(): Promise<void> {
    if (this.#main && this.#main.child.exitCode === null) {
      const exited = once(this.#main.child, 'exit');
      if (this.#main.child.kill('SIGKILL')) await exited;
    }
    for (const each of this.#containers) await each.dispose();
  }

  #running(): Running {
    if (!this.#main) throw new Error('the pod does not run');
    return this.#main;
  }

  #make(container: PodContainer): Container {
    const { image, folder, mounts } = this.#options;
    const made = new Container({
      image,
      pod: this.pod,
      container,
      nodeName: 'node1',
      folder,
      mounts,
      configMap: this.#configMap,
    });
    this.#containers.push(made);
    return made;
  }
}
