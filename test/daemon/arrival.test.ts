/** The interface that the routes of this machine say; `lo` is everywhere. */
import { expect, test } from 'vitest';
import { interfaceTowards } from '../../src/daemon/api/arrival.ts';
import { parseIp } from '../../src/model/ip.ts';

test('an address of this machine is reached by lo', async () => {
  const loopback = parseIp('127.0.0.1');
  expect(loopback && (await interfaceTowards(loopback))).toBe('lo');
});
