/** What tests of servers share: a client, a log that is kept, clocks that stand still, ports that are free. */
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { createServer, connect, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { TestContext } from 'vitest';
import type { Timestamp } from '../../../src/telemetry/http/timestamp.ts';
import { createLog, type Log } from '../../../src/log/log.ts';
import { lineWithoutPlace } from '../../support/logLine.ts';

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Question {
  readonly host?: string;
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string;
}

export function ask(port: number | undefined, path: string, question: Question = {}): Promise<Reply> {
  const { host = '127.0.0.1', method = 'GET', headers = {}, body } = question;
  return new Promise((resolve, reject) => {
    const sent = request({ host, port, path, method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('latin1');
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** What comes back for these bytes, until the server has nothing more to say. */
export function askRaw(port: number | undefined, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port ?? 0, '127.0.0.1');
    let answer = '';
    socket.setEncoding('latin1');
    socket.on('data', (chunk: Buffer | string) => {
      answer += String(chunk);
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(answer));
    socket.end(bytes);
  });
}

/** Asks, and goes away without waiting for the answer. */
export function abandon(port: number | undefined, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port ?? 0, '127.0.0.1');
    socket.on('error', reject);
    socket.on('close', () => resolve());
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`, () => {
      setTimeout(() => socket.destroy(), 50);
    });
  });
}

export function keptLog(): { readonly log: Log; readonly lines: string[] } {
  const lines: string[] = [];
  const write = (line: string): void => {
    lines.push(lineWithoutPlace(line).trim());
  };
  return { log: createLog({ verbosity: 2, format: 'json', write }), lines };
}

/** A port that is held until closed. */
export function holdPort(
  port = 0,
  host = '127.0.0.1',
): Promise<{ readonly port: number; free(): Promise<void> }> {
  return new Promise((resolve, reject) => {
    const server: Server = createServer();
    server.once('error', reject);
    server.listen({ port, host, exclusive: true }, () => {
      const address = server.address();
      resolve({
        port: typeof address === 'object' && address ? address.port : 0,
        free: () =>
          new Promise((freed) => {
            server.close(() => freed());
          }),
      });
    });
  });
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const held = await holdPort(0, '0.0.0.0');
  await held.free();
  return held.port;
}

/** Skips the test where there is no IPv6, and says so. On CI that is a failure: there, skipped is untested. */
export function requireIpv6(context: Pick<TestContext, 'skip'>): void {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  if (addresses.some(({ address }) => address === '::1')) return;
  const why = 'this machine has no IPv6 loopback address';
  if (process.env['CI'] === 'true') throw new Error(why);
  context.skip(why);
}

/** 2026-11-15T03:35:30Z */
const START_NS = 1_794_713_730_000_000_000n;

/** Wall and steady time that go on when a test says so. */
export class FakeMoments {
  #elapsedNs = 0n;

  readonly now = (): Timestamp => ({ wallNs: START_NS + this.#elapsedNs, steadyNs: this.#elapsedNs });

  advance(seconds: number): void {
    this.#elapsedNs += BigInt(Math.round(seconds * 1e9));
  }
}
