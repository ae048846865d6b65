/** Asks a running daemon at its socket. A path in the file system is the same in every network namespace. */
import { type IncomingMessage, request, type RequestOptions } from 'node:http';
import type { WatchEvent } from '../../../src/explain/types.ts';

export interface Asked {
  readonly status: number;
  readonly text: string;
}

function open(socketPath: string, path: string, more: RequestOptions = {}): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, path, agent: false, ...more }, resolve);
    asked.once('error', reject);
    asked.end();
  });
}

export async function ask(socket: string, path: string, more?: RequestOptions): Promise<Asked> {
  const response = await open(socket, path, more);
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += String(chunk);
  return { status: response.statusCode ?? 0, text };
}

export async function askFor<T>(socket: string, path: string): Promise<T> {
  const { status, text } = await ask(socket, path);
  if (status !== 200) throw new Error(`${path}: ${status}: ${text}`);
  return JSON.parse(text) as T;
}

/** What happens, as it comes. */
export async function watchEvents(
  socket: string,
): Promise<{ readonly events: readonly WatchEvent[]; close(): void }> {
  const response = await open(socket, '/v1/watch');
  const events: WatchEvent[] = [];
  let rest = '';
  response.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') events.push(JSON.parse(line) as WatchEvent);
  });
  response.on('error', () => undefined);
  return { events, close: () => response.destroy() };
}
