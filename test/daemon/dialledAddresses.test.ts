import { expect, test } from 'vitest';
import { dialledAddresses } from '../../src/daemon/source.ts';

test.each([
  ['https://203.0.113.1:6443', undefined, [{ ip: '203.0.113.1', port: 6443 }]],
  ['https://[2001:db8:0::1]/k8s', undefined, [{ ip: '2001:db8::1', port: 443 }]],
  ['http://203.0.113.1', undefined, [{ ip: '203.0.113.1', port: 80 }]],
  ['https://api.invalid', 'http://198.51.100.3:3128', [{ ip: '198.51.100.3', port: 3128 }]],
])('%s by way of %s', async (server, proxy, expected) => {
  const access = { server: new URL(server), proxy: proxy === undefined ? undefined : new URL(proxy) };
  expect(await dialledAddresses(access)).toEqual(expected);
});

test('a name is looked up', async () => {
  const found = await dialledAddresses({ server: new URL('https://localhost:6443'), proxy: undefined });
  expect(found.map(({ port }) => port)).toContain(6443);
});
