import { readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { describe, expect, it, vi } from 'vitest';
import { run } from '../../src/system/processes.ts';
import { bundle } from './support/bundle.ts';
import { isRunning } from './support/processes.ts';

/** A program that is to be stopped by its limit has to start within it: some ms on a quiet machine. */
const LIMITS_MS = [500, 5000, 50_000];

async function eventuallyGone(pid: number): Promise<void> {
  await vi.waitFor(() => expect(isRunning(pid)).toBe(false), { timeout: 150_000 });
}

describe('a program', () => {
  it.each([
    [
      'both outputs and the status',
      'echo out; echo err >&2; exit 3',
      { code: 3, stdout: 'out\n', stderr: 'err\n' },
    ],
    ['a signal', 'kill -TERM $$', { code: null, signal: 'SIGTERM' }],
    [
      'the end of who writes into a pipe that nobody reads',
      'yes | head -n 1',
      { code: 0, stdout: 'y\n', stderr: '' },
    ],
    ['an input that has ended', 'cat; echo done', { stdout: 'done\n' }],
  ])('gives %s', async (_what, script, expected) => {
    expect(await run(['sh', '-c', script])).toMatchObject({ signal: null, ...expected });
  });

  it('passes arguments as they are, without a shell', async () => {
    expect((await run(['printf', '%s', '$HOME "a b"'])).stdout).toBe('$HOME "a b"');
  });

  it('kills the whole group, also those in it who ignore SIGTERM', async () => {
    const script = 'trap "" TERM; sleep 300 & echo $!; trap "" TERM; sleep 300; sleep 300';
    let grandchild = 0;
    const onStdout = async (text: string): Promise<void> => {
      grandchild = Number(text);
    };
    for (const timeoutMs of LIMITS_MS) {
      await expect(run(['sh', '-c', script], { timeoutMs, onStdout })).rejects.toMatchObject({
        code: 'PROGRAM_TIMED_OUT',
        message: `sh -c ${script} did not end within ${timeoutMs / 1000} s, and was killed`,
      });
      if (grandchild > 0) break;
    }
    expect(grandchild).toBeGreaterThan(0);
    await eventuallyGone(grandchild);
  });

  it.each<[what: string, act: (stop: AbortController) => void]>([
    [
      'whose output nobody takes any more',
      () => {
        throw new Error('the end');
      },
    ],
    ['that nobody waits for any more', (stop) => stop.abort(new Error('the end'))],
  ])('%s is ended', async (_, act) => {
    const stop = new AbortController();
    let pid = 0;
    const onStdout = async (text: string): Promise<void> => {
      pid = Number(text);
      act(stop);
    };
    const options = { signal: stop.signal, timeoutMs: 600_000, onStdout };
    await expect(run(['sh', '-c', 'echo $$; exec sleep 300'], options)).rejects.toThrow('the end');
    await eventuallyGone(pid);
  });

  it('is not started for whoever has stopped', async () => {
    await expect(run(['true'], { signal: AbortSignal.abort(new Error('the end')) })).rejects.toThrow(
      'the end',
    );
  });

  it('adds to the environment, and to PATH where sbin is missing', async () => {
    const { stdout } = await run(['sh', '-c', 'echo $EXTRA; echo $PATH'], { env: { EXTRA: 'yes' } });
    expect(stdout).toMatch(/^yes\n.*\/usr\/sbin/);
  });

  it('leaves neither processes nor descriptors, also of many at once', async () => {
    const before = readdirSync('/proc/self/fd').length;
    const results = await Promise.all(Array.from({ length: 40 }, () => run(['true'])));
    expect(results.every(({ code }) => code === 0)).toBe(true);
    await expect.poll(() => readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(before);
    const children = await run(['sh', '-c', `ps -o stat= --ppid ${process.pid} || true`]);
    expect(children.stdout).not.toContain('Z');
  });

  it('sends and receives far more than a pipe holds', async () => {
    const stdin = '0123456789ä\n'.repeat(1_000_000);
    const { stdout } = await run(['cat'], { stdin });
    expect(stdout === stdin).toBe(true);
  });

  it('passes output on in pieces, one after the other, however slowly they are taken', async () => {
    const stdin = '0123456789ä\n'.repeat(100_000);
    let taken = '';
    let taking = 0;
    const onStdout = async (text: string): Promise<void> => {
      expect(++taking).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, 2));
      taken += text;
      taking--;
    };
    const result = await run(['cat'], { stdin, onStdout });
    expect(result).toEqual({ code: 0, signal: null, stdout: '', stderr: '' });
    expect(taken === stdin).toBe(true);
  });

  it('lets a program end before it has read its input', async () => {
    const result = await run(['sh', '-c', 'exit 7'], { stdin: 'x'.repeat(10_000_000) });
    expect(result.code).toBe(7);
  });

  it.each([
    ['/usr/sbin/ip6tables-nosuch', ' (Debian package iptables)', { hint: 'apt-get install iptables' }],
    ['frobnicate', '', {}],
  ])('that is missing is named, with the package that brings it: %s', async (program, from, more) => {
    await expect(run([program, '-S'], { stdin: 'x' })).rejects.toMatchObject({
      code: 'PROGRAM_MISSING',
      message: `the program ${program} is not installed${from}`,
      ...more,
    });
  });

  it('cannot start a file that is no program', async () => {
    await expect(run(['/etc'])).rejects.toMatchObject({ code: 'PROGRAM_NOT_STARTED' });
  });

  it('leaves no program behind when its own process ends', async () => {
    const script = await bundle(
      'leaver',
      `import { run } from './src/system/processes.ts';
       void run(['sh', '-c', 'trap "" TERM; echo $$; sleep 300; sleep 300'], {
         onStdout: async (pid) => { process.stdout.write(pid, () => process.exit(0)); },
       });`,
    );
    const { stdout } = await run([process.execPath, script]);
    await rm(script);
    expect(Number(stdout)).toBeGreaterThan(0);
    await eventuallyGone(Number(stdout));
  });
});
