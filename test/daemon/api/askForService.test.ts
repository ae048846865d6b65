/** Why a Service that the proxy does not watch is not served, by what the API server has of it. */
import { expect, test } from 'vitest';
import { askForService } from '../../../src/daemon/api/askForService.ts';
import type { ApiClient } from '../../../src/sources/api/client.ts';
import { failureOfStatus } from '../../../src/sources/api/failure.ts';

const PATH = '/api/v1/namespaces/shop/services fieldSelector=metadata.name%3Dweb';

/** A proxy may list Services, and not get one. */
function serving(
  status: number,
  spec: object | undefined,
  labels = {},
): Pick<ApiClient, 'get' | 'failureOf'> {
  const item = { kind: 'Service', metadata: { namespace: 'shop', name: 'web', labels }, spec };
  const body = new TextEncoder().encode(JSON.stringify({ items: spec ? [item] : [] }));
  return {
    get: async (path, query) => {
      expect(`${path} ${new URLSearchParams(query).toString()}`).toBe(PATH);
      return {
        status,
        retryAfter: undefined,
        encoding: 'json',
        body: ReadableStream.from([body]),
      };
    },
    failureOf: async ({ status: code }, what) => failureOfStatus({ message: 'no' }, code, what, undefined),
  };
}

test.each<[string | undefined, object | undefined, Readonly<Record<string, string>>?]>([
  ['headless', { clusterIP: 'None' }],
  ['external-name', { type: 'ExternalName', externalName: 'example.com' }],
  ['other-proxy', { clusterIP: '10.96.0.1' }, { 'service.kubernetes.io/service-proxy-name': 'x' }],
  ['no-cluster-ip', {}],
  ['invalid', { clusterIP: '10.96.0.1', ports: [{ port: 'eighty' }] }],
  [undefined, undefined],
  [undefined, { clusterIP: '10.96.0.1', ports: [{ port: 80 }] }],
])('%s: %j', async (code, spec, labels = {}) => {
  expect((await askForService(serving(200, spec, labels), 'shop/web'))?.code).toBe(code);
});

test('a server that refuses', async () => {
  await expect(askForService(serving(403, {}), 'shop/web')).rejects.toThrow(/403/);
});
