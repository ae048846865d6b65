/** A log that nobody reads, or that cannot be written, costs lines and nothing else. */
import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { faultCounts } from '../../src/faults.ts';
import { descriptorCalls } from '../../src/system/libc.ts';
import { createLog } from '../../src/log/log.ts';
import { type LostLines, LogSink, nonBlockingWriter } from '../../src/log/sink.ts';

const failure = (code: string): Error => Object.assign(new Error(code), { code });

/** Takes so many bytes, then fails, until it is given more room. */
class Target {
  text = '';
  room = 0;
  code = 'EAGAIN';
  readonly write = (bytes: Uint8Array): number => {
    const taken = bytes.subarray(0, this.room);
    if (taken.length === 0) throw failure(this.code);
    this.room -= taken.length;
    this.text += Buffer.from(taken).toString();
    return taken.length;
  };
}

describe('LogSink', () => {
  it('writes at once what can be written', () => {
    const target = new Target();
    target.room = 100;
    new LogSink(target.write).write('one\n');
    expect(target.text).toBe('one\n');
  });

  it.each(['EAGAIN', 'ENOSPC', 'EPIPE', 'EIO', 'EBADF'])('keeps what %s stops, in order', async (code) => {
    const target = new Target();
    target.code = code;
    target.room = 2;
    const sink = new LogSink(target.write);
    for (const line of ['one\n', 'two\n', 'three\n']) sink.write(line);
    expect(target.text).toBe('on');
    target.room = 100;
    await vi.waitFor(() => expect(target.text).toBe('one\ntwo\nthree\n'), { timeout: 150_000 });
  });

  it('counts the lines of a buffer that it cannot keep', async () => {
    const target = new Target();
    const sink = new LogSink(target.write);
    const lost: LostLines[] = [];
    sink.onLost = (each) => lost.push(each);
    const lines = `${'x'.repeat(1023)}\n`.repeat(600);
    for (const text of [lines, lines, lines]) sink.write(text);
    target.room = Number.MAX_SAFE_INTEGER;
    await vi.waitFor(() => expect(lost.map((each) => each.lines)).toEqual([1200]), { timeout: 150_000 });
  });

  it('drops and counts what it cannot keep, and says so when it can write again', async () => {
    const before = faultCounts().get('log_line_lost') ?? 0;
    const target = new Target();
    target.code = 'ENOSPC';
    const sink = new LogSink(target.write);
    const lost: LostLines[] = [];
    sink.onLost = (each) => lost.push(each);
    const line = `${'x'.repeat(1023)}\n`;
    for (let count = 0; count < 2000; count++) sink.write(line);
    target.room = Number.MAX_SAFE_INTEGER;
    await vi.waitFor(() => expect(lost).toEqual([{ lines: 2000 - 1024, reason: 'ENOSPC' }]), {
      timeout: 150_000,
    });
    expect(target.text.length).toBe(1 << 20);
    expect((faultCounts().get('log_line_lost') ?? 0) - before).toBe(2000 - 1024);
  });

  it('waits for a reader at the end, but not for ever', () => {
    const target = new Target();
    const sink = new LogSink(target.write);
    sink.write('last words\n');
    sink.flush(20);
    expect(target.text).toBe('');
    target.room = 100;
    sink.flush(1000);
    expect(target.text).toBe('last words\n');
  });
});

describe('nonBlockingWriter', () => {
  it('never waits for the reader of a pipe, and leaves the pipe blocking for others', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'junction-sink-'));
    const path = join(directory, 'pipe');
    execFileSync('mkfifo', [path]);
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const descriptor = openSync(path, 'w');
    const sink = new LogSink(nonBlockingWriter(descriptor, descriptorCalls));
    const lines = 3000;
    for (let count = 0; count < lines; count++) sink.write(`${String(count).padStart(99)}\n`);
    const flags = execFileSync('grep', ['flags', `/proc/${process.pid}/fdinfo/${descriptor}`], {
      encoding: 'utf8',
    });
    expect(Number.parseInt(flags.split(/\s+/)[1] ?? '', 8) & constants.O_NONBLOCK).toBe(0);
    const buffer = Buffer.alloc(1 << 16);
    let read = 0;
    await vi.waitFor(
      () => {
        read += readSync(reader, buffer);
        expect(read).toBe(lines * 100);
      },
      { timeout: 150_000, interval: 1 },
    );
    closeSync(reader);
    sink.write('nobody is there any more\n');
    closeSync(descriptor);
    await rm(directory, { recursive: true });
  });

  it('survives a full disk and a descriptor that is none', () => {
    const full = openSync('/dev/full', 'w');
    new LogSink(nonBlockingWriter(full, descriptorCalls)).write('no room\n');
    closeSync(full);
    const none = new LogSink(nonBlockingWriter(9999, descriptorCalls));
    none.write('nowhere\n');
    expect(() => none.flush(10)).not.toThrow();
  });
});

it.each(['text', 'json'] as const)('a field that JSON cannot print is logged as text (%s)', (format) => {
  const lines: string[] = [];
  const log = createLog({ verbosity: 0, format, write: (line) => lines.push(line) });
  log.info('odd', { big: 7n });
  expect(lines[0]).toContain('"7"');
});
