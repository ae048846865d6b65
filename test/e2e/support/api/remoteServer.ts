/** The owner's end of an API server that runs in a host of the lab. */
import type { ChildProcess } from 'node:child_process';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { Host } from '../../../../lab/host.ts';
import { toolEnvironment } from '../../../../lab/tools.ts';
import type { ApiServerOptions } from '../../../support/apiServer/index.ts';
import type { Operations } from './serverProgram.ts';

interface Waiting {
  readonly resolve: (output: never) => void;
  readonly reject: (error: Error) => void;
}

type Message =
  | { readonly ready: true }
  | { readonly id: number; readonly output?: never; readonly error?: string };

export class RemoteApiServer {
  readonly #child: ChildProcess;
  readonly #directory: string;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;

  static async start(host: Host, options: ApiServerOptions): Promise<RemoteApiServer> {
    const directory = await mkdtemp(join(tmpdir(), 'junction-api-'));
    const child = host.spawn([process.execPath, await buildProgram(directory), JSON.stringify(options)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: toolEnvironment(),
    });
    const server = new RemoteApiServer(child, directory);
    await server.#whenReady();
    return server;
  }

  private constructor(child: ChildProcess, directory: string) {
    this.#child = child;
    this.#directory = directory;
    child.on('message', (message: Message) => this.#receive(message));
    child.once('exit', () => this.#fail());
  }

  call<Name extends keyof Operations>(
    name: Name,
    ...args: Parameters<Operations[Name]>
  ): Promise<Awaited<ReturnType<Operations[Name]>>> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#child.send({ id, name, args });
    });
  }

  async close(): Promise<void> {
    if (this.#child.connected) this.#child.disconnect();
    await rm(this.#directory, { recursive: true, force: true });
  }

  #whenReady(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(0, { resolve: () => resolve(), reject });
    });
  }

  #receive(message: Message): void {
    const id = 'ready' in message ? 0 : message.id;
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if ('ready' in message) waiting?.resolve(undefined as never);
    else if (message.error !== undefined) waiting?.reject(new Error(`API server: ${message.error}`));
    else waiting?.resolve(message.output as never);
  }

  #fail(): void {
    for (const { reject } of this.#waiting.values()) reject(new Error('the API server has ended'));
    this.#waiting.clear();
  }
}

/** Beside it stand the certificates, where the source finds them too. */
async function buildProgram(directory: string): Promise<string> {
  const outfile = join(directory, 'server.mjs');
  await build({
    entryPoints: [fileURLToPath(new URL('./serverProgram.ts', import.meta.url))],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'error',
  });
  const certificates = new URL('../../../support/apiServer/certs', import.meta.url);
  await symlink(fileURLToPath(certificates), join(directory, 'certs'));
  return outfile;
}
