import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { printHolder } from '../../../src/system/procfs.ts';
import { lockHolder, socketHolder, takeXtablesLocks } from '../../../src/modes/iptables/locks.ts';
import { run } from '../../../src/system/processes.ts';

describe('our own xtables locks', () => {
  let directory: string;
  let path: string;
  const socketName = `junction-locks-${process.pid}`; // not the real name: the machine's own iptables uses that
  const quick = { timeoutMs: 40, retryMs: 10 };
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'junction-'));
    path = join(directory, 'xtables.lock');
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  const lockedForOthers = async (): Promise<boolean> => (await run(['flock', '-n', path, 'true'])).code === 1;

  it('are seen by others, and given back', async () => {
    const locks = await takeXtablesLocks({ path, socketName, ...quick });
    expect(await lockedForOthers()).toBe(true);
    expect((statSync(path).mode & 0o777).toString(8)).toBe('600');
    // The exact name: padding would follow as further @ signs.
    const names = readFileSync('/proc/net/unix', 'utf8').split('\n');
    expect(names.filter((line) => line.endsWith(` @${socketName}`))).toHaveLength(1);
    locks.release();
    expect(await lockedForOthers()).toBe(false);
    expect(readFileSync('/proc/net/unix', 'utf8')).not.toContain(socketName);
  });

  it('are waited for', async () => {
    const first = await takeXtablesLocks({ path, socketName, ...quick });
    const second = takeXtablesLocks({ path, socketName, timeoutMs: 60_000, retryMs: 10 });
    await sleep(30);
    first.release();
    const locks = await second;
    expect(await lockedForOthers()).toBe(true);
    locks.release();
  });

  it('name the holder of the file, which is not kept open after a failure', async () => {
    const holder = spawn('flock', [path, 'sleep', '300'], { stdio: 'ignore', detached: true });
    while (!(await lockedForOthers())) await sleep(5);
    await expect(takeXtablesLocks({ path, socketName, ...quick })).rejects.toMatchObject({
      code: 'XTABLES_LOCK_HELD',
      message: `the xtables lock ${path} is held by pid ${holder.pid} (flock)`,
    });
    process.kill(-Number(holder.pid));
    (await takeXtablesLocks({ path, socketName, timeoutMs: 60_000, retryMs: 10 })).release();
  });

  it('name the holder of the socket', async () => {
    const locks = await takeXtablesLocks({ path, socketName, ...quick });
    const elsewhere = join(directory, 'other.lock');
    await expect(takeXtablesLocks({ path: elsewhere, socketName, ...quick })).rejects.toMatchObject({
      code: 'XTABLES_LOCK_HELD',
      message: expect.stringContaining(`@${socketName} is held by pid ${process.pid}`),
    });
    locks.release();
  });

  it('cannot be taken where the file cannot be', async () => {
    await expect(takeXtablesLocks({ path: join(directory, 'no/lock'), ...quick })).rejects.toMatchObject({
      code: 'XTABLES_LOCK_UNUSABLE',
    });
  });
});

describe('the holder of a lock', () => {
  it('is found where the process that took it has left it to a child', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'junction-'));
    const path = join(directory, 'lock');
    // The shell takes the lock on descriptor 9 through flock(1), which ends; the shell goes on holding it.
    const holder = spawn('bash', ['-c', `exec 9>${path}; flock 9; exec sleep 300`], { stdio: 'ignore' });
    await expect
      .poll(() => printHolder(lockHolder(path)))
      .toMatch(new RegExp(`^pid ${holder.pid} \\((bash|sleep)\\)$`));
    holder.kill();
    rmSync(directory, { recursive: true });
  });

  it('may be nobody', () => {
    expect(lockHolder('/nonexistent')).toBeUndefined();
    expect(socketHolder('no-such-socket')).toBeUndefined();
  });
});
