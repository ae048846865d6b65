import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { StreamedAnswer } from '../../src/telemetry/http/server.ts';
import { eventually } from '../e2e/support/eventually.ts';
import { ask, askRaw } from '../telemetry/http/support.ts';
import { DOCUMENT, SCRIPT, servePage } from './support.ts';

describe('files', () => {
  test.each([
    ['/', 200, DOCUMENT],
    ['/index.html', 200, DOCUMENT],
    ['/services', 200, DOCUMENT],
    ['/services/shop/web.v2', 200, DOCUMENT],
    ['/services/%3Cimg%20onerror%3D1%3E/x', 200, DOCUMENT],
    ['/v10', 200, DOCUMENT],
    ['//', 200, DOCUMENT],
    ['/page-ABCDEFGH.js', 200, SCRIPT],
    ['/page-ABCDEFGH.js?x', 200, SCRIPT],
    ['/page-00000000.js', 404, 'not found\n'],
    ['/favicon.ico', 404, 'not found\n'],
    ['/__proto__', 200, DOCUMENT],
    ['/../../../etc/passwd', 200, DOCUMENT],
    ['/..%2f..%2fetc%2fpasswd', 200, DOCUMENT],
    ['/../package.json', 200, DOCUMENT],
    ['/v1', 200, 'answer to /v1'],
    ['/v1/../index.html', 200, 'answer to /v1/../index.html'],
  ])('%s: %i', async (path, status, body) => {
    const { port } = await servePage();
    const reply = await askRaw(port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
    expect(reply).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(reply.slice(reply.indexOf('\r\n\r\n') + 4)).toBe(body);
  });

  test('those whose names change with their contents are kept for ever, the others are asked for again', async () => {
    const { port } = await servePage();
    const script = await ask(port, '/page-ABCDEFGH.js');
    expect(script.headers).toMatchObject({
      'cache-control': 'public, max-age=31536000, immutable',
      'content-type': 'text/javascript; charset=utf-8',
    });
    expect((await ask(port, '/node')).headers).toMatchObject({ 'cache-control': 'no-cache' });
  });

  test('HEAD is GET without a body; no other method is allowed', async () => {
    const { port } = await servePage();
    const { status, headers, body } = await ask(port, '/', { method: 'HEAD' });
    expect([status, headers['content-length'], body]).toEqual([200, String(DOCUMENT.length), '']);
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND']) {
      const refused = await ask(port, '/', { method });
      expect([refused.status, refused.headers.allow]).toEqual([405, 'GET, HEAD']);
    }
  });
});

describe('requests that nobody makes', () => {
  test('with a body: it is not read', async () => {
    const { port } = await servePage();
    for (const header of ['Content-Length: 1000000', 'Transfer-Encoding: chunked'])
      for (const path of ['/', '/v1/status']) {
        const reply = await askRaw(port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${header}\r\n\r\n`);
        expect(reply).toMatch(/^HTTP\/1.1 413 [^]*Connection: close/);
      }
  });

  const GET = 'GET / HTTP/1.1\r\nHost: localhost\r\n';
  test.each([
    ['both lengths', `${GET}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`, 400],
    ['a NUL in a header', `${GET}X: \0\r\n\r\n`, 400],
    ['headers that are too large', `${GET}X: ${'y'.repeat(9000)}\r\n\r\n`, 431],
    ['a target that is too long', `GET /${'y'.repeat(9000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`, 431],
    ['a star', 'OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', 405],
  ])('%s', async (_, bytes, status) => {
    const { port } = await servePage();
    expect(await askRaw(port, bytes)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect((await ask(port, '/')).status).toBe(200);
  });
});

describe('answers of the API', () => {
  const passedOn = (fails = false): StreamedAnswer => ({
    status: 200,
    headers: { 'content-type': 'text/plain', 'x-content-type-options': 'none' },
    chunks: (async function* () {
      yield await Promise.resolve('row\n');
      if (fails) throw new Error('on purpose');
    })(),
  });

  test('are passed on, with headers of the page', async () => {
    const { port } = await servePage({ api: () => passedOn() });
    const { headers, body } = await ask(port, '/v1/services');
    expect(body).toBe('row\n');
    expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' });
  });

  test('one whose reader goes away is not made to its end', async () => {
    let [made, isOver] = [0, false];
    const chunks = async function* () {
      try {
        for (;;) {
          made++;
          yield await Promise.resolve(randomBytes(64 * 1024));
        }
      } finally {
        isOver = true;
      }
    };
    const { port } = await servePage({ api: () => ({ status: 200, headers: {}, chunks: chunks() }) });
    const socket = connect(port ?? 0, '127.0.0.1');
    socket.write('GET /v1/services HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await eventually('some of it', () => made > 3);
    socket.destroy();
    await eventually('its end', () => isOver);
    expect((await ask(port, '/')).status).toBe(200);
  });

  test('one that fails half-way is cut off, and not a whole one', async () => {
    const { port } = await servePage({ api: () => passedOn(true) });
    await expect(ask(port, '/v1/services')).rejects.toThrow('aborted');
    expect((await ask(port, '/')).status).toBe(200);
  });
});
