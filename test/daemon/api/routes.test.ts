import { describe, expect, test } from 'vitest';
import { apiPage, data, listOfItems, RefusedQuestion } from '../../../src/daemon/api/routes.ts';
import type { Request } from '../../../src/telemetry/http/server.ts';
import { askPage } from './ask.ts';

const reported: unknown[] = [];
const page = apiPage(
  [
    { path: '/v1/echo/*/*', parameters: ['port'], answer: ({ names, query }) => data([names, [...query]]) },
    { path: '/v1/refused', parameters: [], answer: refuse },
    {
      path: '/v1/broken',
      parameters: [],
      answer: () => {
        throw new Error('on purpose');
      },
    },
  ],
  (error) => reported.push(error),
);

function refuse(): never {
  throw new RefusedQuestion(404, 'no-such', 'there is none', 'make one');
}

async function ask(path: string, more: Partial<Request> = {}) {
  const { status, text } = await askPage(page, path, more);
  return [status, JSON.parse(text) as unknown];
}

describe('a question', () => {
  test('has names in its path, and parameters', async () => {
    expect(await ask('/v1/echo/shop/w%65b?port=80')).toEqual([200, [['shop', 'web'], [['port', '80']]]]);
  });

  test.each([
    ['/v1/echo/shop', 404, 'not-found'],
    ['/v1/echo/shop/', 404, 'not-found'],
    ['/v1/echo/shop/web/x', 404, 'not-found'],
    ['/v2/echo/shop/web', 404, 'not-found'],
    ['/v1/echo/shop/web?prot=80', 400, 'parameter'],
    [`/v1/echo/shop/web?port=${'8'.repeat(2000)}`, 400, 'parameter'],
  ])('that is none is refused: %s', async (path, status, code) => {
    expect(await ask(path)).toEqual([status, { error: expect.objectContaining({ code }) }]);
  });

  test.each([
    [{ method: 'POST' }, 405],
    [{ method: 'DELETE' }, 405],
    [{ method: 'HEAD' }, 405],
    [{ headers: { 'content-length': '5' } }, 413],
    [{ headers: { 'transfer-encoding': 'chunked' } }, 413],
  ])('changes nothing and has no body: %o', async (more, status) => {
    expect((await ask('/v1/echo/shop/web', more))[0]).toBe(status);
  });

  test('that cannot be answered is answered with why', async () => {
    const error = { code: 'no-such', message: 'there is none', hint: 'make one' };
    expect(await ask('/v1/refused')).toEqual([404, { error }]);
  });

  test('that fails says nothing of the inside, and is reported', async () => {
    const [status, body] = await ask('/v1/broken');
    expect([status, JSON.stringify(body).includes('on purpose')]).toEqual([500, false]);
    expect(reported).toEqual([new Error('on purpose')]);
  });
});

test.each([0, 1, 5000])('a list of %i is JSON, and has an item in each line', async (count) => {
  const items = Array.from({ length: count }, (_, index) => ({ index }));
  const chunks: string[] = [];
  for await (const chunk of listOfItems(items, () => undefined).chunks) chunks.push(String(chunk));
  const text = chunks.join('');
  expect(JSON.parse(text)).toEqual(items);
  expect(text.trim().split('\n')).toHaveLength(count + 2);
});
