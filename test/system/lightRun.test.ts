import { mkdtempSync, rmSync } from 'node:fs';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { lightRun } from '../../src/system/lightRun.ts';
import { run } from '../../src/system/processes.ts';

const SHELL = 'sh';

describe('a program that only reads', () => {
  test.each([
    ['its output and its errors', ['-c', 'echo out; echo err >&2; exit 3']],
    ['a signal', ['-c', 'kill -TERM $$']],
    ['a pipe that nobody reads: SIGPIPE ends it', ['-c', 'yes | head -n 1']],
    ['no input', ['-c', 'cat; echo done']],
    ['its environment', ['-c', 'echo $LC_ALL']],
  ])('%s, as run has it', async (_, args) => {
    expect(await lightRun([SHELL, ...args])).toEqual(await run([SHELL, ...args]));
  });

  test('output while it arrives, slowed down by who reads it', async () => {
    let length = 0;
    const result = await lightRun([SHELL, '-c', 'head -c 3000000 /dev/zero | tr "\\\\0" x'], {
      onStdout: async (text) => {
        await new Promise((resolve) => setTimeout(resolve, 1));
        length += text.length;
      },
    });
    expect([result.code, result.stdout, length]).toEqual([0, '', 3_000_000]);
  });

  test('an environment of its own', async () => {
    expect((await lightRun([SHELL, '-c', 'echo $A'], { env: { A: 'b c' } })).stdout).toBe('b c\n');
  });

  test('one that is not there', async () => {
    await expect(lightRun(['no-such-program'])).rejects.toMatchObject({ code: 'PROGRAM_MISSING' });
  });

  test('one that takes too long is killed, with what it started', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'junction-light-'));
    const argv = [SHELL, '-c', `cd ${folder}; sleep 300 & echo $! >child; wait`] as const;
    await expect(lightRun(argv, { timeoutMs: 500 })).rejects.toMatchObject({ code: 'PROGRAM_TIMED_OUT' });
    // Gone, or waiting to be reaped.
    const state = await lightRun([SHELL, '-c', `cat /proc/$(cat ${folder}/child)/stat || echo gone`]);
    expect(state.stdout).toMatch(/gone|\) Z /);
    rmSync(folder, { recursive: true });
  });

  test('one that nobody waits for any more is killed', async () => {
    const stop = new AbortController();
    const running = lightRun([SHELL, '-c', 'echo a; exec sleep 300'], {
      signal: stop.signal,
      timeoutMs: 600_000,
    });
    setTimeout(() => stop.abort(new Error('the end')), 50);
    await expect(running).rejects.toThrow('the end');
    await expect(lightRun(['true'], { signal: stop.signal })).rejects.toThrow('the end');
  });

  test.each([lightRun, run])('one in the background lets others go first', async (runner) => {
    // The shell waits until it has been told. Field 19 of stat is the nice value.
    const script =
      'i=0; while [ "$(cat /proc/$$/oom_score_adj)" != 1000 ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done; cat /proc/$$/oom_score_adj; cut -d" " -f19 /proc/$$/stat';
    const { stdout } = await runner([SHELL, '-c', script], { isBackground: true });
    expect(stdout).toBe(`1000\n${Math.max(5, getPriority())}\n`);
  });

  test('an error of who reads ends it', async () => {
    const failing = lightRun([SHELL, '-c', 'echo a; exec sleep 300'], {
      onStdout: async () => {
        throw new Error('full');
      },
    });
    await expect(failing).rejects.toThrow('full');
  });

  test('many at once leave neither processes nor descriptors', async () => {
    const { readdirSync } = await import('node:fs');
    const before = readdirSync('/proc/self/fd').length;
    const results = await Promise.all(Array.from({ length: 40 }, () => lightRun(['true'])));
    expect(results.every(({ code }) => code === 0)).toBe(true);
    await expect.poll(() => readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(before);
    const children = await lightRun([SHELL, '-c', `ps -o stat= --ppid ${process.pid} || true`]);
    expect(children.stdout).not.toContain('Z');
  });
});
