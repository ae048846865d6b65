import { type ClientRequest, request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { eventually } from '../e2e/support/eventually.ts';
import { ask, askRaw } from '../telemetry/http/support.ts';
import { servePage } from './support.ts';

const TOKEN = 'dGhlLXJpZ2h0LXRva2VuLW9mLXRlc3Rz';
const get = (path: string, ...headers: readonly string[]): string =>
  [`GET ${path} HTTP/1.1`, ...headers, 'Connection: close', '', ''].join('\r\n');
const statusOf = (reply: string): number => Number(/^HTTP\/1.1 (\d+)/.exec(reply)?.[1]);

describe('a host', () => {
  test.each([
    ['127.0.0.1', 200],
    ['127.0.0.1:8080', 200],
    ['192.168.7.7:8080', 200],
    ['[::1]:8080', 200],
    ['[fd00::1]', 200],
    ['localhost', 200],
    ['LOCALHOST:9', 200],
    ['node1:8080', 200],
    ['evil.example', 421],
    ['evil.example:8080', 421],
    ['127.0.0.1.evil.example', 421],
    ['localhost.evil.example', 421],
    ['node1.evil.example', 421],
    ['2130706433', 421],
    ['node1@evil.example', 421],
    ['', 421],
  ])('%o: %i', async (host, status) => {
    const { port } = await servePage();
    for (const path of ['/', '/v1/status', '/page-ABCDEFGH.js']) {
      const reply = await askRaw(port, get(path, `Host: ${host}`));
      expect([path, statusOf(reply)]).toEqual([path, status]);
      expect(reply).toContain("Content-Security-Policy: default-src 'none'; script-src 'self'");
    }
  });

  test.each([
    ['http://127.0.0.1/v1/status', 'Host: 127.0.0.1', 200],
    ['http://evil.example/v1/status', 'Host: 127.0.0.1', 421],
    ['http://127.0.0.1/v1/status', 'Host: evil.example', 421],
    ['http://127.0.0.1@evil.example/v1/status', 'Host: 127.0.0.1', 421],
    ['http:///v1/status', 'Host: 127.0.0.1', 421],
  ])('in the target counts: %s, %s: %i', async (target, host, status) => {
    const { port } = await servePage();
    expect(statusOf(await askRaw(port, get(target, host)))).toBe(status);
  });

  test.each([
    ['localhost:8080', true],
    ['127.0.0.1', true],
    ['[::1]:8080', true],
    ['node1', false],
    ['192.168.7.7:8080', false],
    ['evil.example', false],
  ])('%s: an opener policy is sent where browsers take it: %s', async (host, isSent) => {
    const { port } = await servePage();
    const reply = await askRaw(port, get('/', `Host: ${host}`));
    expect(reply.includes('Cross-Origin-Opener-Policy: same-origin')).toBe(isSent);
  });

  test('is needed', async () => {
    const { port } = await servePage();
    expect(statusOf(await askRaw(port, get('/')))).toBe(400);
    expect(statusOf(await askRaw(port, 'GET / HTTP/1.0\r\n\r\n'))).toBe(421);
  });
});

describe('a page of another origin', () => {
  const sites = (site: string, mode: string, dest: string) => ({
    'sec-fetch-site': site,
    'sec-fetch-mode': mode,
    'sec-fetch-dest': dest,
  });

  test.each<[string, Record<string, string>, number, number]>([
    ['the same origin', { host: 'localhost:8080', origin: 'http://localhost:8080' }, 200, 200],
    ['another', { host: 'localhost:8080', origin: 'http://evil.example' }, 403, 403],
    ['another port', { host: 'localhost:8080', origin: 'http://localhost:3000' }, 403, 403],
    ['another scheme', { host: 'localhost:8080', origin: 'https://localhost:8080' }, 403, 403],
    ['a file, or a frame in a sandbox', { host: 'localhost', origin: 'null' }, 403, 403],
    ['its own script', sites('same-origin', 'cors', 'empty'), 200, 200],
    ['the address bar', sites('none', 'navigate', 'document'), 200, 200],
    ['a link elsewhere', sites('cross-site', 'navigate', 'document'), 200, 403],
    ['a link at another port', sites('same-site', 'navigate', 'document'), 200, 403],
    ['a frame', sites('cross-site', 'navigate', 'iframe'), 403, 403],
    ['an object', sites('cross-site', 'navigate', 'object'), 403, 403],
    ['a script elsewhere', sites('cross-site', 'no-cors', 'script'), 403, 403],
    ['a fetch at another port', sites('same-site', 'cors', 'empty'), 403, 403],
    ['an image elsewhere', sites('cross-site', 'no-cors', 'image'), 403, 403],
  ])('%s', async (_, headers, page, api) => {
    const { port } = await servePage();
    const replies = [await ask(port, '/', { headers }), await ask(port, '/v1/status', { headers })];
    expect(replies.map(({ status }) => status)).toEqual([page, api]);
    for (const reply of replies)
      expect(Object.keys(reply.headers).filter((name) => /^access-control|^set-cookie/.test(name))).toEqual(
        [],
      );
  });

  test('gets no answer to a preflight', async () => {
    const { port } = await servePage();
    const headers = { origin: 'http://evil.example', 'access-control-request-method': 'GET' };
    const { status, headers: replied } = await ask(port, '/v1/status', { method: 'OPTIONS', headers });
    expect([status, replied['access-control-allow-origin']]).toEqual([403, undefined]);
  });
});

describe('a token', () => {
  const bearing = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

  test('is asked for where answers are, and not for the page itself', async () => {
    const { port } = await servePage({ token: TOKEN });
    expect((await ask(port, '/services/shop/web')).status).toBe(200);
    const refused = await ask(port, '/v1/status');
    expect([refused.status, refused.headers['www-authenticate']]).toEqual([401, 'Bearer']);
    expect(JSON.parse(refused.body)).toMatchObject({ error: { code: 'token' } });
    expect((await ask(port, '/v1/status', bearing(TOKEN))).body).toBe('answer to /v1/status');
    expect((await ask(port, `/v1/status?token=${TOKEN}`)).status).toBe(401);
    expect((await ask(port, '/v1/status', { headers: { cookie: `token=${TOKEN}` } })).status).toBe(401);
  });

  test.each(['', 'x', TOKEN.slice(1), `${TOKEN}x`, TOKEN.toLowerCase()])(
    'that is %o waits a second, is refused, and is not logged',
    async (wrong) => {
      const { port, clock, lines } = await servePage({ token: TOKEN });
      let status = 0;
      const asked = ask(port, '/v1/status', bearing(wrong)).then((reply) => (status = reply.status));
      await eventually('it waits', () => clock.pending > 0);
      await clock.advance(999);
      expect(status).toBe(0);
      await clock.advance(1);
      await asked;
      expect(status).toBe(401);
      expect(lines).toEqual([expect.stringContaining('"client":"127.0.0.1"')]);
      if (wrong !== '' && wrong !== 'x') expect(lines.join()).not.toContain(wrong);
    },
  );

  test('that is wrong a thousand times holds little, and delays nobody who has the right one', async () => {
    const { port, clock, lines } = await servePage({ token: TOKEN });
    const statuses: number[] = [];
    const sent: ClientRequest[] = [];
    const guess = (): void => {
      const asked = request(
        { host: '127.0.0.1', port, path: '/v1/status', agent: false, ...bearing('wrong') },
        (response) => {
          statuses.push(response.statusCode ?? 0);
          response.resume();
        },
      );
      asked.on('error', () => undefined).end();
      sent.push(asked);
    };
    for (let count = 0; count < 32; count++) guess();
    await eventually('as many wait as may', () => clock.pending === 32);
    for (let count = 0; count < 968; count++) guess();
    await eventually('others are turned away', () => statuses.length === 968);
    expect(new Set(statuses)).toEqual(new Set([429]));
    expect(clock.pending).toBe(32);
    expect((await ask(port, '/v1/status', bearing(TOKEN))).status).toBe(200);
    expect(lines).toHaveLength(1);
    for (const asked of sent) asked.destroy();
    await eventually('those who have gone wait no more', () => clock.pending === 0);
  });
});
