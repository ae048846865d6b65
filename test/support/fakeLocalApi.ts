/** A local API with given answers, as the running proxy would give them, at a socket of its own. */
import { createServer, type Server } from 'node:http';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class FakeLocalApi {
  readonly socket: string;
  readonly asked: string[] = [];
  /** By path: a value for JSON, or lines. */
  readonly answers = new Map<string, unknown>();
  readonly #directory: string;
  readonly #server: Server;

  private constructor(directory: string) {
    this.#directory = directory;
    this.socket = join(directory, 'junction.sock');
    this.#server = createServer(({ url = '' }, response) => {
      this.asked.push(url);
      const answer = this.answers.get(url.split('?')[0] ?? '');
      if (answer === undefined) {
        response.writeHead(404, { 'content-type': 'application/json' });
        response.end(
          JSON.stringify({ error: { code: 'not-found', message: 'there is nothing at this path' } }),
        );
      } else if (Array.isArray(answer) && url.startsWith('/v1/snapshot')) {
        response.writeHead(200, { 'content-type': 'application/x-ndjson' });
        response.end(answer.map((line) => `${JSON.stringify(line)}\n`).join(''));
      } else {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify(answer));
      }
    });
  }

  static async start(): Promise<FakeLocalApi> {
    const api = new FakeLocalApi(await mkdtemp(join(tmpdir(), 'junction-api-')));
    await new Promise<void>((resolve) => {
      api.#server.listen(api.socket, resolve);
    });
    return api;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
    await rm(this.#directory, { recursive: true, force: true });
  }
}
