import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Answer,
  BoundServer,
  NOT_FOUND,
  pageServer,
  parseListenAddress,
  plain,
  type Request,
} from '../../../src/telemetry/http/server.ts';
import { FakeClock } from '../../time/fakeClock.ts';
import { ask, askRaw, keptLog } from './support.ts';

const { log, lines } = keptLog();

const IDLE_MS = 500;

async function page(request: Request) {
  if (request.path === '/throws') throw new Error('on purpose');
  if (request.path === '/echo') return plain(200, (await request.text(5)) ?? 'too long');
  if (request.path === '/slow')
    return new Promise<Answer>((resolve) => setTimeout(resolve, 2 * IDLE_MS, plain(200, 'late')));
  if (request.path === '/query') return plain(200, JSON.stringify([...request.query]));
  return request.path === '/' ? plain(200, 'ok') : NOT_FOUND;
}

const server = new BoundServer(
  { address: '127.0.0.1:0', clock: new FakeClock(), log },
  page,
  { message: 'failed', what: 'failed on' },
  { makeServer: (answer, to) => pageServer(answer, to).setTimeout(IDLE_MS) },
);
beforeAll(() => server.start());
afterAll(() => server.stop());

test('a page that throws is a 500, and is told to the operator', async () => {
  const { status, body } = await ask(server.port, '/throws');
  expect([status, body]).toEqual([500, 'internal error\n']);
  expect(lines.at(-1)).toContain('"msg":"HTTP handler failed","path":"/throws","err":"on purpose"');
});

test('a client that waits for its answer is not idle', async () => {
  expect((await ask(server.port, '/slow')).body).toBe('late');
});

test.each([
  ['5', '5'],
  ['123456', 'too long'],
  ['', ''],
])('a body of %o reads as %o', async (body, expected) => {
  expect((await ask(server.port, '/echo', { method: 'PUT', body })).body).toBe(expected);
});

test.each([
  ['0.0.0.0:10256', { host: '0.0.0.0', port: 10256 }],
  ['[fd00::1]:80', { host: 'fd00::1', port: 80 }],
  [':10249', { host: '', port: 10249 }],
  ['10.0.0.1', undefined],
  ['::1:80', undefined],
  ['10.0.0.1:99999', undefined],
  ['', undefined],
])('the address %o', (address, expected) => expect(parseListenAddress(address)).toEqual(expected));

describe('nonsense', () => {
  const close = 'Host: x\r\nConnection: close\r\n\r\n';
  test.each([
    ['no HTTP at all', 'hello\r\n\r\n', 'HTTP/1.1 400'],
    ['bytes', '\x16\x03\x01\x02\x00\x01\x00', 'HTTP/1.1 400'],
    ['a header without an end', `GET / HTTP/1.1\r\nX: ${'y'.repeat(40_000)}`, 'HTTP/1.1 431'],
    ['two slashes', `GET // HTTP/1.1\r\n${close}`, 'HTTP/1.1 404'],
    ['a bad escape', `GET /%zz HTTP/1.1\r\n${close}`, 'HTTP/1.1 404'],
    ['a path to climb', `GET /../../etc/passwd HTTP/1.1\r\n${close}`, 'HTTP/1.1 404'],
    ['a bad escape in the query', `GET /query?a=%zz&&=&b HTTP/1.1\r\n${close}`, 'HTTP/1.1 200'],
    ['a whole address', `GET http://x/?y HTTP/1.1\r\n${close}`, 'HTTP/1.1 200'],
    ['only a host', `GET http://x HTTP/1.1\r\n${close}`, 'HTTP/1.1 200'],
    ['a star', `OPTIONS * HTTP/1.1\r\n${close}`, 'HTTP/1.1 404'],
    ['an unknown method', `FROB / HTTP/1.1\r\n${close}`, 'HTTP/1.1 400'],
    ['a tunnel', `CONNECT x:1 HTTP/1.1\r\n${close}`, ''],
    [
      'an upgrade',
      `GET / HTTP/1.1\r\nUpgrade: x\r\nHost: x\r\nConnection: Upgrade, close\r\n\r\n`,
      'HTTP/1.1 200',
    ],
  ])('%s', async (_, bytes, expected) => {
    expect((await askRaw(server.port, bytes)).slice(0, expected.length)).toBe(expected);
    expect((await ask(server.port, '/')).body).toBe('ok');
  });
});
