/** The Junction that the demo runs: the checkout's, or one in a container as the DaemonSet has it. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { Container, disposePod } from '../container/container.ts';
import { unpackImage } from '../container/ociImage.ts';
import type { Pod } from '../container/pod.ts';
import type { Host } from '../host.ts';
import type { DemoOptions } from './options.ts';
import { JUNCTION, MANIFESTS } from './paths.ts';
import { step } from './progress.ts';
import { junctionArguments, NODE } from './settings.ts';

const FOLDER = 'junction-demo-image-';

export interface DemoProgram {
  readonly command: readonly string[];
  /** For people: where it comes from, if not from the checkout. */
  readonly from: string;
  /** What has to happen on the node before. */
  prepare(host: Host): Promise<void>;
  dispose(): Promise<void>;
}

export async function programOf(options: DemoOptions, socket: string | undefined): Promise<DemoProgram> {
  if (options.image !== undefined) return containerProgram(options, options.image, socket);
  return {
    command: [process.execPath, JUNCTION, 'run', ...junctionArguments(options, socket)],
    from: '',
    prepare: () => Promise.resolve(),
    dispose: () => Promise.resolve(),
  };
}

async function containerProgram(
  options: DemoOptions,
  path: string,
  socket: string | undefined,
): Promise<DemoProgram> {
  await removeStale();
  const folder = mkdtempSync(join(tmpdir(), `${FOLDER}${process.pid}-`));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  process.once('exit', remove);
  const image = await step(
    'Unpacking the image',
    () => Promise.resolve(unpackImage(path, folder)),
    ({ digest }) => `The image is ${digest}`,
  );
  const pod = readPod(options.mode);
  // By the same name inside, where nobody is in the folder that this was started in.
  const manifests = resolve(options.manifests);
  const args = ['run', ...junctionArguments({ ...options, manifests }, socket)];
  const mounts = [
    { source: manifests, destination: manifests, readOnly: true },
    ...(socket === undefined
      ? []
      : [{ source: dirname(socket), destination: dirname(socket), readOnly: false }]),
  ];
  const common = { image, pod, nodeName: NODE, folder, mounts };
  const containers = pod.containers.map((container) => new Container({ ...common, container, args }));
  const initArgs = [...args, '--init-only', '--sysctl-root=/host'];
  const inits = (pod.initContainers ?? []).map(
    (container) => new Container({ ...common, container, args: initArgs }),
  );
  return {
    command: containers[0]?.command ?? [],
    from: ' from the image',
    prepare: async (host) => {
      for (const init of inits) await host.run(init.command);
    },
    dispose: async () => {
      for (const each of [...inits, ...containers]) await each.dispose();
      remove();
      process.off('exit', remove);
    },
  };
}

/** Of demos that were killed. */
async function removeStale(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    const [, pid] = new RegExp(`^${FOLDER}(\\d+)-`).exec(name) ?? [];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) await disposePod(join(tmpdir(), name));
  }
}

interface Manifest {
  readonly kind: string;
  readonly spec: { readonly template: { readonly spec: Pod } };
}

function readPod(mode: DemoOptions['mode']): Pod {
  const file = join(MANIFESTS, mode === 'nftables' ? 'junction-nftables.yaml' : 'junction.yaml');
  const objects = parseAllDocuments(readFileSync(file, 'utf8')).map((each) => each.toJS() as Manifest | null);
  const found = objects.find((each) => each?.kind === 'DaemonSet');
  if (!found) throw new Error(`${file} has no DaemonSet`);
  return found.spec.template.spec;
}
