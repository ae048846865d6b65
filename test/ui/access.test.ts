import { type ClientRequest, request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { eventually } from '../e2e/support/eventually.ts';
import { ask, askRaw } from '../telemetry/http/support.ts';
import { servePage } from './support.ts';

const TOKEN = 'dGhlLXJpZ2h0LXRva2VuLW9mLXRlc3Rz';

/** The status, and what is sent beside it. */
async function get(
  port: number | undefined,
  path: string,
  host?: string,
): Promise<readonly [number, string]> {
  const named = host === undefined ? [] : [`Host: ${host}`];
  const lines = [`GET ${path} HTTP/1.1`, ...named, 'Connection: close', '', ''];
  const reply = await askRaw(port, lines.join('\r\n'));
  return [Number(/^HTTP\/1.1 (\d+)/.exec(reply)?.[1]), reply];
}

describe('a host', () => {
  const OURS =
    '127.0.0.1 127.0.0.1:8080 192.168.7.7:8080 [::1]:8080 [fd00::1] localhost LOCALHOST:9 node1:8080';
  const OTHERS =
    'evil.example evil.example:8080 127.0.0.1.evil.example localhost.evil.example node1.evil.example 2130706433 127.1 0x7f000001 node1@evil.example 127.0.0.1@evil.example [127.0.0.1] [fe80::1%eth0]:80 127.0.0.1:80:80 127.0.0.1:65536 127.0.0.1/ evil.example#127.0.0.1 :80';

  test.each([
    [200, OURS.split(' ')],
    [421, [...OTHERS.split(' '), '']],
  ])('%i for %j', async (status, hosts) => {
    const { port } = await servePage();
    for (const host of hosts)
      for (const path of ['/', '/v1/status', '/page-ABCDEFGH.js']) {
        const [replied, reply] = await get(port, path, host);
        expect([host, path, replied]).toEqual([host, path, status]);
        expect(reply).toContain("Content-Security-Policy: default-src 'none'; script-src 'self'");
      }
  });

  test('in the target counts, and one is needed', async () => {
    const { port } = await servePage();
    const found = [
      await get(port, 'http://127.0.0.1/v1/status', '127.0.0.1'),
      await get(port, 'http://evil.example/v1/status', '127.0.0.1'),
      await get(port, 'http://127.0.0.1/v1/status', 'evil.example'),
      await get(port, 'http://127.0.0.1@evil.example/v1/status', '127.0.0.1'),
      await get(port, 'http:///v1/status', '127.0.0.1'),
      await get(port, '/'),
    ];
    expect(found.map(([status]) => status)).toEqual([200, 421, 421, 421, 421, 400]);
    expect(await askRaw(port, 'GET / HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1.1 421 /);
  });

  test('an opener policy is sent where browsers take it', async () => {
    const { port } = await servePage();
    const sent = async (host: string): Promise<boolean> =>
      (await get(port, '/', host))[1].includes('Cross-Origin-Opener-Policy: same-origin');
    for (const host of ['localhost:8080', '127.0.0.1', '[::1]:8080']) expect(await sent(host)).toBe(true);
    for (const host of ['node1', '192.168.7.7:8080', 'evil.example']) expect(await sent(host)).toBe(false);
  });
});

describe('a page of another origin', () => {
  const from = (origin: string) => ({ host: 'localhost:8080', origin });
  const sites = (site: string, mode: string, dest: string) => ({
    'sec-fetch-site': site,
    'sec-fetch-mode': mode,
    'sec-fetch-dest': dest,
  });

  test.each<[string, Record<string, string>, number, number]>([
    ['the same origin', from('http://localhost:8080'), 200, 200],
    ['another', from('http://evil.example'), 403, 403],
    ['another port', from('http://localhost:3000'), 403, 403],
    ['another scheme', from('https://localhost:8080'), 403, 403],
    ['a file, or a frame in a sandbox', from('null'), 403, 403],
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
    const names = replies.flatMap((reply) => Object.keys(reply.headers));
    expect(names.filter((name) => /^access-control|^set-cookie/.test(name))).toEqual([]);
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

  test('that is wrong waits a second, is refused, and is not logged', async () => {
    for (const wrong of ['', TOKEN.slice(1), `${TOKEN}x`, TOKEN.toLowerCase()]) {
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
      if (wrong !== '') expect(lines.join()).not.toContain(wrong);
    }
  });

  test('that is wrong a thousand times holds little, and delays nobody who has the right one', async () => {
    const { port, clock, lines } = await servePage({ token: TOKEN });
    const statuses: number[] = [];
    const sent: ClientRequest[] = [];
    const guess = (): void => {
      const where = { host: '127.0.0.1', port, path: '/v1/status', agent: false, ...bearing('wrong') };
      const asked = request(where, (response) => {
        statuses.push(response.statusCode ?? 0);
        response.resume();
      });
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
