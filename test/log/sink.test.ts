/** A log that nobody reads, or that cannot be written, costs lines and nothing else. */
import { describe, expect, it, vi } from 'vitest';
import { faultCounts } from '../../src/faults.ts';
import { createLog } from '../../src/log/log.ts';
import { type LostLines, LogSink } from '../../src/log/sink.ts';

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
  it.each(['EAGAIN', 'ENOSPC'])('keeps what %s stops, in order', async (code) => {
    const target = new Target();
    target.code = code;
    target.room = 2;
    const sink = new LogSink(target.write);
    for (const line of ['one\n', 'two\n', 'three\n']) sink.write(line);
    expect(target.text).toBe('on');
    target.room = 100;
    await vi.waitFor(() => expect(target.text).toBe('one\ntwo\nthree\n'), { timeout: 150_000 });
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

it.each(['text', 'json'] as const)('a field that JSON cannot print is logged as text (%s)', (format) => {
  const lines: string[] = [];
  const log = createLog({ verbosity: 0, format, write: (line) => lines.push(line) });
  log.info('odd', { big: 7n });
  expect(lines[0]).toContain('"7"');
});
