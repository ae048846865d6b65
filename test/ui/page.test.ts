import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { json, type StreamedAnswer } from '../../src/telemetry/http/server.ts';
import { eventually } from '../e2e/support/eventually.ts';
import { ask, askRaw } from '../telemetry/http/support.ts';
import { DOCUMENT, SCRIPT, servePage } from './support.ts';

const decode = (body: string, coding: string | undefined): string => {
  const bytes = Buffer.from(body, 'latin1');
  if (coding === undefined) return bytes.toString();
  return (coding === 'br' ? brotliDecompressSync(bytes) : gunzipSync(bytes)).toString();
};

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
    ['/page-ABCDEFGH.js.br', 404, 'not found\n'],
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
    const document = await ask(port, '/');
    expect(document.headers).toMatchObject({ 'cache-control': 'no-cache', vary: 'Accept-Encoding' });
    const held = { headers: { 'if-none-match': String(document.headers.etag) } };
    const same = await ask(port, '/node', held);
    expect([same.status, same.body, same.headers.etag]).toEqual([304, '', document.headers.etag]);
    expect(same.headers['content-length']).toBeUndefined();
    expect(same.headers['content-security-policy']).toBeDefined();
  });

  test('If-None-Match is a list of tags, or a star', async () => {
    const { port } = await servePage();
    const statuses = [];
    for (const tags of ['*', '"other", W/"v38-identity"', '"other"', 'v38-identity', ''])
      statuses.push((await ask(port, '/', { headers: { 'if-none-match': tags } })).status);
    expect(statuses).toEqual([304, 304, 200, 200, 200]);
  });

  test.each([
    ['gzip, deflate, br, zstd', 'br'],
    ['gzip, deflate', 'gzip'],
    ['GZIP;q=0.5', 'gzip'],
    ['br;q=0, gzip', 'gzip'],
    ['br; q=0.000,gzip ; q=0', undefined],
    ['br;q=0.001', 'br'],
    ['bro, xgzip, *', undefined],
    ['', undefined],
  ])('Accept-Encoding: %s gets %s', async (accepted, coding) => {
    const { port } = await servePage();
    const { body, headers } = await ask(port, '/', { headers: { 'accept-encoding': accepted } });
    expect(headers['content-encoding']).toBe(coding);
    expect(decode(body, coding)).toBe(DOCUMENT);
    expect(headers.etag).toBe(`"v38-${coding ?? 'identity'}"`);
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
  const rows = Array.from({ length: 5000 }, (_, index) => `row ${index}\n`);
  const streamed = (fails = false): StreamedAnswer => ({
    status: 200,
    headers: { 'Content-Type': 'text/plain' },
    chunks: (async function* () {
      for (const row of rows) yield await Promise.resolve(row);
      if (fails) throw new Error('on purpose');
    })(),
  });
  const GZIP = { headers: { 'accept-encoding': 'br, gzip' } };

  test.each([
    ['a stream', () => streamed(), rows.join('')],
    ['a large text', () => json(200, JSON.stringify(rows)), JSON.stringify(rows)],
  ])('%s is compressed for who accepts it', async (_, api, text) => {
    const { port } = await servePage({ api });
    const { headers, body } = await ask(port, '/v1/services', GZIP);
    expect(headers).toMatchObject({
      'content-encoding': 'gzip',
      vary: 'Accept-Encoding',
      'cache-control': 'no-store',
    });
    expect(body.length).toBeLessThan(text.length / 2);
    expect(decode(body, 'gzip')).toBe(text);
    const whole = await ask(port, '/v1/services');
    expect([whole.body === text, whole.headers['content-encoding']]).toEqual([true, undefined]);
  });

  const passedOn = (length: number, more: Record<string, string> = {}): StreamedAnswer => ({
    status: 200,
    headers: {
      'content-type': 'text/plain',
      'content-length': String(length),
      'x-content-type-options': 'nosniff',
      ...more,
    },
    chunks: (async function* () {
      yield await Promise.resolve(Buffer.alloc(length, 'x'));
    })(),
  });

  test.each([
    [20_000, {}, 'gzip', undefined],
    [1000, {}, undefined, '1000'],
    [20_000, { 'content-encoding': 'br' }, 'br', '20000'],
  ])('one of %i bytes that is passed on: %j', async (length, more, coding, known) => {
    const { port } = await servePage({ api: () => passedOn(length, more) });
    const { headers, body } = await ask(port, '/v1/services', GZIP);
    expect([headers['content-encoding'], headers['content-length']]).toEqual([coding, known]);
    expect(headers['x-content-type-options']).toBe('nosniff');
    if (coding === 'gzip') expect(decode(body, coding)).toBe('x'.repeat(length));
    else expect(body).toHaveLength(length);
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
    socket.write('GET /v1/services HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n');
    await eventually('some of it', () => made > 3);
    socket.destroy();
    await eventually('its end', () => isOver);
    expect((await ask(port, '/')).status).toBe(200);
  });

  test('one that fails half-way is cut off, and not a whole one', async () => {
    const { port } = await servePage({ api: () => streamed(true) });
    await expect(ask(port, '/v1/services', GZIP)).rejects.toThrow('aborted');
    await expect(ask(port, '/v1/services')).rejects.toThrow('aborted');
    expect((await ask(port, '/')).status).toBe(200);
  });
});
