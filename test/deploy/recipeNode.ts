/**
 * A node of the lab for commands of docs/recipes/: with its own /etc, and with kubelet's part, which starts the static pod whose
 * file is in /etc/kubernetes/manifests and stops it when the file is gone.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Host } from '../../lab/host.ts';
import type { CommandResult } from '../../lab/protocol.ts';
import { TOOL_PATH } from '../../lab/tools.ts';
import { eventually } from '../e2e/support/eventually.ts';
import { listAt, ROOT, readObjects } from './chart.ts';
import { HOST, MOUNTS, onlyThese } from './podScript.ts';
import { STATIC_POD_FOLDER } from './plainManifests.ts';

export const NODE = 'node1';
const MANIFEST = '/etc/kubernetes/manifests/junction.yaml';

/** A copy of /etc that can be written, and that nobody else sees. */
const OWN_ETC = `
mount --make-rprivate /
mount -t tmpfs tmpfs /mnt
cp -a /etc /mnt/etc
mount --bind /mnt/etc /etc
echo ready
exec sleep infinity`;

/** As in the container: the folder of the volume, and nothing else of the node's /var/lib. */
const CONFIG = `
mount -t tmpfs tmpfs /var/lib
mkdir /var/lib/kube-proxy
mount --bind ${STATIC_POD_FOLDER} /var/lib/kube-proxy`;

export class RecipeNode {
  readonly #host: Host;
  readonly #holder: ChildProcess;
  #pod: { readonly process: ChildProcess; log: string } | undefined;

  static async create(host: Host): Promise<RecipeNode> {
    const holder = host.spawn(['unshare', '--mount', 'sh', '-euc', OWN_ETC], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    if (holder.stdout) await once(holder.stdout, 'data');
    return new RecipeNode(host, holder);
  }

  private constructor(host: Host, holder: ChildProcess) {
    this.#host = host;
    this.#holder = holder;
  }

  get podLog(): string {
    return this.#pod?.log ?? '';
  }

  /** As somebody who is root on the node pastes it. */
  run(block: string): Promise<CommandResult> {
    const words = ['env', `--chdir=${ROOT}`, `PATH=${join(ROOT, 'bin')}:${TOOL_PATH}`, `NODE=${NODE}`];
    return this.#host.exec([...this.#enter(this.#holder), ...words, 'sh', '-euc', block]);
  }

  async write(path: string, text: string): Promise<void> {
    await this.#host.run([...this.#enter(this.#holder), 'sh', '-euc', `cat > ${path}`], { stdin: text });
  }

  /** As `kubectl exec` in the container of the static pod. */
  async exec(command: string): Promise<CommandResult> {
    if (!this.#pod) throw new Error('no static pod runs');
    const words = ['env', `PATH=${join(ROOT, 'bin')}:${TOOL_PATH}`, 'sh', '-euc', command];
    return this.#host.exec([...this.#enter(this.#pod.process), ...words]);
  }

  /** kubelet's part. */
  async reconcile(): Promise<void> {
    const { exitCode, stdout } = await this.run(`cat ${MANIFEST}`);
    if (exitCode === 0 && !this.#pod) await this.#start(stdout);
    if (exitCode !== 0 && this.#pod) await this.#stop();
  }

  async close(): Promise<void> {
    await this.#stop();
    const ended = once(this.#holder, 'exit');
    if (this.#holder.kill('SIGKILL')) await ended;
  }

  async #start(manifest: string): Promise<void> {
    const [pod] = readObjects(manifest);
    const lines = (['initContainers', 'containers'] as const).map((kind) => {
      const args = listAt(pod, 'spec', kind, 0, 'args').map((arg) =>
        String(arg).replace('$(NODE_NAME)', NODE).replace('--sysctl-root=/host', `--sysctl-root=${HOST}`),
      );
      const names = listAt(pod, 'spec', kind, 0, 'securityContext', 'capabilities', 'add').map(String);
      const quoted = args.map((arg) => `'${arg}'`).join(' ');
      return `${kind === 'containers' ? 'exec ' : ''}${onlyThese(names)} ${join(ROOT, 'bin/junction')} ${quoted}`;
    });
    const script = [`set -eu${CONFIG}`, MOUNTS, ...lines].join('\n');
    const started = this.#host.spawn(
      [...this.#enter(this.#holder), 'unshare', '--mount', 'sh', '-c', script],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    const running = { process: started, log: '' };
    for (const stream of [started.stdout, started.stderr])
      stream?.on('data', (chunk: Buffer) => {
        running.log += chunk.toString();
      });
    this.#pod = running;
    await eventually('it serves', () => {
      if (started.exitCode !== null) throw new Error(`it ended:\n${running.log}`);
      return /"Serving" ipFamily="IPv4"/.test(running.log) && /"Serving" ipFamily="IPv6"/.test(running.log);
    });
  }

  async #stop(): Promise<void> {
    const pod = this.#pod;
    this.#pod = undefined;
    if (!pod || pod.process.exitCode !== null) return;
    const ended = once(pod.process, 'exit');
    pod.process.kill('SIGTERM');
    await ended;
  }

  #enter({ pid }: ChildProcess): readonly string[] {
    return ['nsenter', `--mount=/proc/${String(pid)}/ns/mnt`, '--'];
  }
}
