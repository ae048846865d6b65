/** One question at the socket of a running proxy. */
import { request } from 'node:http';

export interface Answer {
  readonly text: string;
  readonly ms: number;
}

/** Resolves to the answer and how long it took. */
export function ask(socketPath: string, path: string): Promise<Answer> {
  const started = performance.now();
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, path, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('error', reject);
      response.once('end', () =>
        resolve({ text: Buffer.concat(chunks).toString(), ms: performance.now() - started }),
      );
    });
    asked.once('error', reject);
    asked.end();
  });
}
