/** A stand-in for the running proxy: answers at a unix socket with what a test gives it, and notes what it was asked. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

export class StubApi {
  readonly socket: string;
  /** Paths with their parameters, in order. */
  readonly asked: string[] = [];
  readonly #folder = mkdtempSync(join(tmpdir(), 'junction-stub-'));
  readonly #answers = new Map<string, Answer>();
  #server: Server | undefined;

  constructor() {
    this.socket = join(this.#folder, 'junction.sock');
  }

  async start(): Promise<void> {
    rmSync(this.socket, { force: true });
    const server = createServer((request, response) => {
      const url = request.url ?? '';
      this.asked.push(url);
      const answer = this.#answers.get(url.split('?')[0] ?? '');
      if (answer) answer(request, response);
      else respond(response, 404, { error: { code: 'not-found', message: 'there is nothing at this path' } });
    });
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(this.socket, resolve));
  }

  /** As when the proxy ends: connections are cut. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (!server) return;
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** A value for JSON; a text goes as it is. */
  answer(path: string, value: unknown, status = 200): void {
    this.#answers.set(path, (_, response) => respond(response, status, value));
  }

  respondWith(path: string, answer: Answer): void {
    this.#answers.set(path, answer);
  }
}

function respond(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(typeof value === 'string' ? value : JSON.stringify(value));
}
