import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { findHolder, type InstanceLock, takeInstanceLock } from '../../src/system/instanceLock.ts';
import { eventually } from '../e2e/support/eventually.ts';

describe('the lock of one network namespace', () => {
  const name = `\0junction-test-${process.pid}`;
  const path = name.padEnd(108, '.');
  const ends: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
  });

  async function take(waitMs = 0, signal = new AbortController().signal): Promise<InstanceLock> {
    const lock = await takeInstanceLock({
      about: { mode: 'nftables', node: 'node1' },
      signal,
      waitMs,
      onWait: (holder) => said.push(`waiting for ${holder}`),
      onImpostor: (holder) => said.push(`impostor ${holder}`),
      name,
    });
    ends.push(() => lock.release());
    return lock;
  }
  const said: string[] = [];

  /** Another process that listens there: whatever it says, or nothing. */
  async function another(answer: string | undefined, before: readonly string[] = []): Promise<ChildProcess> {
    const program = `require('node:net').createServer((s) => ${answer === undefined ? '{}' : `s.end(${JSON.stringify(answer)})`}).listen({ path: ${JSON.stringify(path)} })`;
    const child = spawn('env', [...before, process.execPath, '-e', program], { stdio: 'ignore' });
    const exited = once(child, 'exit');
    ends.push(() => {
      child.kill('SIGKILL');
      return exited;
    });
    await eventually('it listens', async () => (await findHolder(name)) !== undefined);
    return child;
  }

  test('has one holder, who can be named', async () => {
    expect(await findHolder(name)).toBeUndefined();
    const lock = await take();
    const holder = await findHolder(name);
    expect(holder?.text).toMatch(
      new RegExp(`^pid ${process.pid}, mode nftables, node node1, since \\d{4}-.*, command ".*vitest`),
    );
    await expect(take()).rejects.toMatchObject({
      code: 'ALREADY_RUNNING',
      message: expect.stringContaining(`pid ${process.pid}, mode nftables`),
    });
    await lock.release();
    expect(await findHolder(name)).toBeUndefined();
    await take();
  });

  test('is waited for, and free when its holder is killed', async () => {
    const child = await another('{"pid":7,"mode":"iptables"}');
    said.length = 0;
    const taking = take(60_000);
    await eventually('it waits', () => said.length > 0);
    expect(said).toEqual([`waiting for pid ${child.pid}, mode iptables`]);
    child.kill('SIGKILL');
    await taking;
  });

  test('a wait for it ends with the signal', async () => {
    await another('{}');
    const controller = new AbortController();
    const taking = take(60_000, controller.signal);
    controller.abort();
    await expect(taking).rejects.toThrow(/abort/i);
  });

  test('a holder that does not answer is named all the same', async () => {
    const child = await another(undefined);
    expect((await findHolder(name))?.text).toBe(`pid ${child.pid}; it does not answer`);
  });

  test.each(['', 'no json', '{"pid":{}}', '[]', `{"mode":"${'x'.repeat(100_000)}"}`])(
    'whatever a holder says does no harm (%#)',
    async (answer) => {
      const server = createServer((socket) => socket.on('error', () => undefined).end(answer));
      ends.push(() => server.close());
      await new Promise<void>((resolve) => server.listen({ path }, resolve));
      expect((await findHolder(name))?.text.length).toBeLessThan(500);
    },
  );

  test('another user cannot keep Junction from its work', async (context) => {
    if (process.getuid?.() !== 0) return context.skip('not root');
    await another('{}', ['setpriv', '--reuid=65534', '--clear-groups', '--']);
    said.length = 0;
    await take();
    expect(said).toEqual([expect.stringMatching(/^impostor pid \d+, user 65534$/)]);
  });
});
