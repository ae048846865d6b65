/** The owner's end of an API server that runs in a host of the lab. */
import type { ChildProcess } from 'node:child_process';
import type { Host } from '../../../../lab/host.ts';
import { toolEnvironment } from '../../../../lab/tools.ts';
import type { ApiServerOptions } from '../../../support/apiServer/index.ts';
import { testProgram } from '../../../support/programs.ts';
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
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;

  static async start(host: Host, options: ApiServerOptions): Promise<RemoteApiServer> {
    const child = host.spawn([process.execPath, testProgram('api-server'), JSON.stringify(options)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: toolEnvironment(),
    });
    const server = new RemoteApiServer(child);
    await server.#whenReady();
    return server;
  }

  private constructor(child: ChildProcess) {
    this.#child = child;
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

  close(): void {
    if (this.#child.connected) this.#child.disconnect();
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
