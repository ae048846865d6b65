/** The test API server refuses what the real one refuses. */
import { request } from 'undici';
import { expect, it, onTestFinished } from 'vitest';
import { TestApiServer } from '../../support/apiServer/index.ts';
import { SHOP } from './objects.ts';

it.each([
  ['limit=2', 200],
  ['resourceVersion=0', 200],
  ['resourceVersion=x', 400],
  ['resourceVersion=105&limit=2', 410],
  ['resourceVersion=105&limit=2&resourceVersionMatch=NotOlderThan', 200],
  ['resourceVersion=9999', 504],
  ['resourceVersionMatch=NotOlderThan', 422],
  ['resourceVersion=0&resourceVersionMatch=Exact', 422],
  ['sendInitialEvents=true', 422],
  ['continue=abc', 400],
  ['labelSelector=a%3Db', 400],
  ['fieldSelector=spec.type%3DClusterIP', 400],
  ['fieldSelector=metadata.name%3Dweb', 200],
  ['lmit=2', 400],
  ['watch=true', 400],
  ['watch=true&resourceVersion=0', 400],
  ['watch=true&resourceVersion=105&limit=2', 400],
  ['watch=true&resourceVersion=105&resourceVersionMatch=NotOlderThan', 422],
  ['watch=true&sendInitialEvents=true', 422],
  ['watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=9999', 504],
  ['watch=true&resourceVersion=105&timeoutSeconds=0', 200],
])('services?%s: %i', async (query, expected) => {
  const server = await TestApiServer.start();
  onTestFinished(() => server.close());
  server.put(...SHOP);
  const headers = { accept: 'application/json' };
  const { statusCode, body } = await request(`${server.url}/api/v1/services?${query}`, { headers });
  await body.dump();
  expect(statusCode).toBe(expected);
});

it.each([
  ['application/json', 200],
  ['application/vnd.kubernetes.protobuf, */*', 200],
  ['application/vnd.kubernetes.protobuf', 406],
])('accept: %s: %i', async (accept, expected) => {
  const server = await TestApiServer.start();
  onTestFinished(() => server.close());
  const { statusCode, body } = await request(`${server.url}/api/v1/services`, { headers: { accept } });
  await body.dump();
  expect(statusCode).toBe(expected);
});
