import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { httpGet } from '../../src/system/httpGet.ts';

let server: Server | undefined;
afterEach(() => server?.closeAllConnections());
afterEach(() => void server?.close());

async function serve(answer: Parameters<typeof createServer>[1]): Promise<string> {
  server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/proxyMode`;
}

test('the status and the text', async () => {
  const url = await serve((asked, answer) => void answer.writeHead(200).end(`${asked.url} iptables`));
  expect(await httpGet(url, 5000)).toEqual({ status: 200, text: '/proxyMode iptables' });
});

test('an error is an answer', async () => {
  const url = await serve((_, answer) => void answer.writeHead(503).end('no'));
  expect(await httpGet(url, 5000)).toEqual({ status: 503, text: 'no' });
});

test('nothing listens', async () => {
  const url = await serve(undefined);
  await new Promise((resolve) => server?.close(resolve));
  expect(await httpGet(url, 5000)).toBeUndefined();
});

test.each([
  ['silence', () => {}],
  ['a part', (_, answer) => void answer.writeHead(200).write('begin')],
  [
    'a broken answer',
    (_, answer) => void answer.writeHead(200, { 'content-length': '9' }).write('x', () => answer.destroy()),
  ],
] satisfies readonly (readonly [string, Parameters<typeof createServer>[1]])[])(
  '%s is no answer',
  async (_, answer) => {
    expect(await httpGet(await serve(answer), 100)).toBeUndefined();
  },
);
