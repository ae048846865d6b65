/** Questions to the running proxy, through commands and a stub: what is asked, and what is said when there is no answer. */
import { renameSync } from 'node:fs';
import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { askJson, askLines } from '../../src/cli/localApi.ts';
import { useFiles } from './files.ts';
import { junction } from './junction.ts';
import { StubApi } from './stubApi.ts';

const stub = new StubApi();
beforeAll(() => stub.start());
afterAll(() => stub.remove());
const file = useFiles();

test.each([
  ['status', '/v1/status'],
  ['explain shop/web:53/udp', '/v1/explain/shop/web?port=53%2Fudp'],
  ['explain --from pod/a/b --to [fd00::1]:80', '/v1/explain?from=pod%2Fa%2Fb&to=%5Bfd00%3A%3A1%5D%3A80'],
])('junction %s asks for %s', async (words, path) => {
  await junction(...words.split(' '), '--api-socket', stub.socket);
  expect(stub.asked.at(-1)).toBe(path);
});

test('lines, however they are cut', async () => {
  stub.respondWith('/v1/lines', (_, response) => {
    response.write('{"a":1}\n{"a"', () => response.end(':2}\n\n{"a":"ü"}'));
  });
  const lines = [];
  for await (const line of askLines(stub.socket, '/v1/lines')) lines.push(line);
  expect(lines).toEqual([{ a: 1 }, { a: 2 }, { a: 'ü' }]);
});

describe('without a good answer', () => {
  const refusal = (socket: string, ...words: readonly string[]): Promise<unknown> =>
    junction(...(words.length > 0 ? words : ['status']), '--api-socket', socket).then(
      ({ code, out, err }) => {
        expect({ code, out }).toEqual({ code: 1, out: '' });
        return err;
      },
    );

  test.each([['status'], ['services'], ['endpoints', 'shop/web'], ['explain', 'shop/web'], ['watch']])(
    'no socket: %s %s',
    async (...words) => {
      expect(await refusal('/nowhere/junction.sock', ...words)).toMatch(
        /^junction: \/nowhere\/junction.sock: no Junction runs here: there is no such socket \(LOCAL_API_UNREACHABLE\)\n {2}what to do: Start it \(junction run.*--manifests.*--kubeconfig.*--bundle.*--api-socket/,
      );
    },
  );

  test('a socket whose process has ended', async () => {
    const abandoned = createServer();
    const path = `${stub.socket}.old`;
    await new Promise<void>((resolve) => abandoned.listen(`${path}er`, resolve));
    // Closing deletes the file by its name; another name stays, as after kill -9.
    renameSync(`${path}er`, path);
    await new Promise((resolve) => abandoned.close(resolve));
    expect(await refusal(path)).toContain(`${path}: the Junction that made this socket has ended`);
  });

  test.each([
    [
      404,
      '{"error":{"code":"not-found","message":"no Service","hint":"shop/web?"}}',
      'QUESTION_UNANSWERABLE',
    ],
    [500, '{"error":{"code":"internal","message":"it failed"}}', 'LOCAL_API_REFUSED'],
    [200, '<html>', 'LOCAL_API_MALFORMED'],
    [200, '{"a":', 'LOCAL_API_MALFORMED'],
    [500, '{}', 'LOCAL_API_MALFORMED'],
    [400, '[1]', 'LOCAL_API_MALFORMED'],
  ])('%i %s: %s', async (status, text, code) => {
    stub.respondWith('/v1/status', (_, response) => response.writeHead(status).end(text));
    const err = await refusal(stub.socket);
    expect(err).toContain(`(${code})\n`);
    if (status === 404) expect(err).toMatch(/^junction: no Service \(.*\n {2}what to do: shop\/web\?\n$/);
  });

  test('cut off', async () => {
    stub.respondWith('/v1/status', (_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{', () => response.destroy());
    });
    expect(await refusal(stub.socket)).toContain('(LOCAL_API_UNREACHABLE)');
  });

  test('silence', async () => {
    const silent = createServer();
    const path = `${stub.socket}.silent`;
    await new Promise<void>((resolve) => silent.listen(path, resolve));
    onTestFinished(() => void silent.close());
    await expect(askJson(path, '/v1/status', { timeoutMs: 50 })).rejects.toMatchObject({
      code: 'LOCAL_API_UNREACHABLE',
      message: expect.stringContaining('no answer within 0.05 s'),
    });
  });
});

test('the socket may stand in the configuration file, and must be somewhere', async () => {
  const config = file(
    'config.yaml',
    'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\njunction: { apiSocket: /elsewhere/junction.sock }\n',
  );
  expect((await junction('status', '--config', config)).err).toContain(
    '/elsewhere/junction.sock: no Junction',
  );
  expect(await junction('status', '--api-socket=')).toMatchObject({
    code: 2,
    err: expect.stringContaining('--api-socket is empty, so there is no running proxy to ask'),
  });
});
