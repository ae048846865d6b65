import { expect, test } from 'vitest';
import { askForService } from '../../../src/daemon/api/askForService.ts';
import type { ApiClient, ApiResponse } from '../../../src/sources/api/client.ts';
import { failureOfStatus } from '../../../src/sources/api/failure.ts';

const asked: string[] = [];

function client(status: number, body: unknown): Pick<ApiClient, 'get' | 'failureOf'> {
  return {
    get: (path, query) => {
      asked.push(`${path} ${new URLSearchParams(query).toString()}`);
      const bytes = [new TextEncoder().encode(JSON.stringify(body))];
      return Promise.resolve({
        status,
        retryAfter: undefined,
        encoding: 'json',
        body: ReadableStream.from(bytes),
      } as ApiResponse);
    },
    failureOf: ({ status: code }, what) =>
      Promise.resolve(failureOfStatus({ message: 'no' }, code, what, undefined)),
  };
}

function list(spec: object, labels: object = {}): object {
  return { items: [{ kind: 'Service', metadata: { namespace: 'shop', name: 'web', labels }, spec }] };
}

test.each([
  ['headless', list({ clusterIP: 'None' })],
  ['external-name', list({ type: 'ExternalName', externalName: 'example.com' })],
  ['other-proxy', list({ clusterIP: '10.96.0.1' }, { 'service.kubernetes.io/service-proxy-name': 'x' })],
  ['no-cluster-ip', list({})],
  ['invalid', list({ clusterIP: '10.96.0.1', ports: [{ port: 'eighty' }] })],
])('%s', async (code, answer) => {
  expect((await askForService(client(200, answer), 'shop/web'))?.code).toBe(code);
});

test('there is none, or it is served', async () => {
  expect(await askForService(client(200, { items: [] }), 'shop/web')).toBeUndefined();
  const served = list({ clusterIP: '10.96.0.1', ports: [{ port: 80 }] });
  expect(await askForService(client(200, served), 'shop/web')).toBeUndefined();
});

test('asks for one name in one namespace, which a proxy may list', () => {
  expect(new Set(asked)).toEqual(
    new Set(['/api/v1/namespaces/shop/services fieldSelector=metadata.name%3Dweb']),
  );
});

test('a server that refuses', async () => {
  await expect(askForService(client(403, {}), 'shop/web')).rejects.toThrow(/403/);
});
