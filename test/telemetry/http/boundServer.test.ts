import { describe, expect, test } from 'vitest';
import {
  plain,
  type BindOptions,
  BoundServer,
  parseListenAddress,
} from '../../../src/telemetry/http/server.ts';
import { FakeClock } from '../../time/fakeClock.ts';
import { ask, holdPort, keptLog, requireIpv6 } from './support.ts';

function stage(address: string, options: Partial<BindOptions> = {}) {
  const clock = new FakeClock();
  const { log, lines } = keptLog();
  const server = new BoundServer({ address, clock, log, ...options }, () => plain(200, 'here'), {
    message: 'Server failed',
    what: 'could not start on',
  });
  return { clock, lines, server };
}

describe('addresses', () => {
  test.each([
    ['0.0.0.0:10256', { host: '0.0.0.0', port: 10256 }],
    ['[::]:10256', { host: '::', port: 10256 }],
    ['[fd00::1]:80', { host: 'fd00::1', port: 80 }],
    [':10249', { host: '', port: 10249 }],
    ['10.0.0.1', undefined],
    ['::1:80', undefined],
    ['10.0.0.1:99999', undefined],
    ['', undefined],
  ])('%s', (address, expected) => expect(parseListenAddress(address)).toEqual(expected));

  const everywhere = ['0.0.0.0:0', '[::]:0', ':0'];

  test.each(everywhere)('%s is reached over IPv4', async (address) => {
    const { server } = stage(address);
    await server.start();
    expect((await ask(server.port, '/')).body).toBe('here');
    await server.stop();
  });

  test.for(everywhere)('%s is reached over IPv6, where there is any', async (address, context) => {
    requireIpv6(context);
    const { server } = stage(address);
    await server.start();
    expect((await ask(server.port, '/', { host: '::1' })).body).toBe('here');
    await server.stop();
  });

  test('one address is that address only', async () => {
    const { server } = stage('127.0.0.2:0');
    await server.start();
    expect((await ask(server.port, '/', { host: '127.0.0.2' })).body).toBe('here');
    await expect(ask(server.port, '/', { host: '127.0.0.1' })).rejects.toThrow('ECONNREFUSED');
    await server.stop();
  });
});

describe('an address that somebody else has', () => {
  test('is tried again every five seconds', async () => {
    const held = await holdPort();
    const { server, clock, lines } = stage(`127.0.0.1:${held.port}`);
    await server.start();
    expect(server.port).toBeUndefined();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(
      `"level":"error","msg":"Server failed","err":"could not start on 127.0.0.1:${held.port}: listen EADDRINUSE`,
    );
    await held.free();
    await clock.advance(4999);
    expect(server.port).toBeUndefined();
    await clock.advance(1);
    await expect.poll(() => server.port).toBe(held.port);
    expect((await ask(server.port, '/')).body).toBe('here');
    expect(clock.pending).toBe(0);
    await server.stop();
  });

  test('is the end where that is asked for', async () => {
    const held = await holdPort();
    const errors: string[] = [];
    const onHardFail = (error: Error): void => {
      errors.push(error.message);
    };
    const { server, clock } = stage(`127.0.0.1:${held.port}`, { onHardFail });
    await server.start();
    expect(errors).toHaveLength(1);
    expect(errors[0]).toContain(`could not start on 127.0.0.1:${held.port}: listen EADDRINUSE`);
    expect(clock.pending).toBe(0);
    await server.stop();
    await held.free();
  });

  test('is no longer tried after a stop', async () => {
    const held = await holdPort();
    const { server, clock } = stage(`127.0.0.1:${held.port}`);
    await server.start();
    await server.stop();
    expect(clock.pending).toBe(0);
    await held.free();
  });
});

test('a stop frees the port at once, whoever is still connected', async () => {
  const { server } = stage('127.0.0.1:0');
  await server.start();
  const { port } = server;
  await ask(port, '/', { headers: { connection: 'keep-alive' } });
  await server.stop();
  expect(server.port).toBeUndefined();
  const again = await holdPort(port);
  await again.free();
});
