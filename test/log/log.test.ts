/** Lines as kube-proxy writes them: its header, its keys in JSON, `--vmodule` and split streams. */
import { describe, expect, test, vi } from 'vitest';
import { createLog, type Log, type LogOptions } from '../../src/log/log.ts';
import { LogBuffer } from '../../src/log/sink.ts';

function kept(options: Partial<LogOptions>): { readonly log: Log; readonly lines: string[] } {
  const lines: string[] = [];
  const write = (line: string): void => void lines.push(line);
  return { log: createLog({ verbosity: 0, format: 'text', write, ...options }), lines };
}

describe('JSON', () => {
  test('has the time, the caller, the message, and the verbosity of what is no error', () => {
    const { log, lines } = kept({ format: 'json', verbosity: 4 });
    log.info('an info', { a: 1 });
    log.verbose(4, 'a detail');
    log.warn('a warning');
    log.error('an error', { err: new Error('reason') });
    // Which line that is, the test runner changes; test/cli/logging.test.ts looks at it in the program.
    const caller = expect.stringMatching(/^log\/log\.test\.ts:\d+$/) as string;
    const place = { ts: expect.any(Number) as number, caller };
    const parsed = lines.map((line) => JSON.parse(line) as { readonly ts: number });
    expect(parsed).toEqual([
      { ...place, level: 'info', msg: 'an info', v: 0, a: 1 },
      { ...place, level: 'info', msg: 'a detail', v: 4 },
      { ...place, level: 'warning', msg: 'a warning', v: 0 },
      { ...place, level: 'error', msg: 'an error', err: 'reason' },
    ]);
    expect(Object.keys(parsed[0] ?? {})).toEqual(['ts', 'caller', 'level', 'msg', 'v', 'a']);
  });

  test('a callback of Node has a caller too', () => {
    const { log, lines } = kept({ format: 'json' });
    [1].forEach(() => log.info('in a callback'));
    expect(lines[0]).toContain('"caller":"log/log.test.ts:');
  });

  test('a function without a file is no reason to fail', () => {
    const { log, lines } = kept({ format: 'json' });
    // Called by the engine itself, with no frame of JavaScript above.
    JSON.stringify({ toJSON: () => log.info('x') });
    expect(lines).toHaveLength(1);
  });
});

test('text has the header of klog, with file and line', () => {
  const { log, lines } = kept({});
  log.warn('Odd thing', { key: 'value', count: 3 });
  const header = String.raw`^W\d{4} \d\d:\d\d:\d\d\.\d{6} +${process.pid} log\.test\.ts:\d+\] `;
  expect(lines[0]).toMatch(new RegExp(`${header}"Odd thing" key="value" count=3\n$`));
  // As wide as klog has it, so that columns of both stand below each other.
  expect(lines[0]?.slice(0, 30)).toBe(`${lines[0]?.slice(0, 22)}${String(process.pid).padStart(7)} `);
});

test('stack traces of errors stay as they were', () => {
  const frames = (): number => (new Error('x').stack ?? '').split('\n').length;
  const before = frames();
  kept({}).log.info('x');
  expect(frames()).toBe(before);
  expect(before).toBeGreaterThan(2);
});

describe('vmodule', () => {
  test.each([
    ['log.test', true],
    ['log*', true],
    ['*', true],
    ['l?g.test', true],
    ['[kl]og.test', true],
    ['[^l]og.test', false],
    ['log', false],
    ['log.test.ts', false],
    ['logXtest', false],
    ['[', false],
    ['(', false],
  ])('%s', (filePattern, isShown) => {
    const { log, lines } = kept({ modules: [{ filePattern, verbosity: 2 }] });
    log.verbose(2, 'shown');
    log.verbose(3, 'not shown');
    expect(lines).toHaveLength(isShown ? 1 : 0);
  });

  test('the first pattern that matches counts; the verbosity of all is the least', () => {
    const modules = [
      { filePattern: 'log.*', verbosity: 1 },
      { filePattern: '*', verbosity: 9 },
    ];
    const { log, lines } = kept({ verbosity: 2, modules });
    log.verbose(2, 'by -v');
    log.verbose(3, 'too much');
    expect(lines).toHaveLength(1);
  });

  test('can be changed while running', () => {
    const { log, lines } = kept({});
    log.verbose(1, 'not yet');
    log.setModules([{ filePattern: 'log*', verbosity: 1 }]);
    log.verbose(1, 'now');
    log.setModules([]);
    log.verbose(1, 'no longer');
    expect(lines).toHaveLength(1);
  });
});

test.each([
  ['text', ['error', 'warning']],
  ['json', ['error']],
] as const)('split streams, %s', (format, errors) => {
  const info: string[] = [];
  const { log, lines } = kept({ format, writeInfo: (line) => void info.push(line) });
  log.info('a message');
  log.error('an error');
  log.warn('a warning');
  expect(lines).toHaveLength(errors.length);
  expect(info).toHaveLength(3 - errors.length);
  expect(info[0]).toContain('a message');
  expect(lines[0]).toContain('an error');
});

describe('a buffer', () => {
  function buffered(
    size: number,
    flushMs = 1000,
  ): { readonly buffer: LogBuffer; readonly written: string[] } {
    const written: string[] = [];
    return { buffer: new LogBuffer((lines) => written.push(lines), size, flushMs), written };
  }

  test('is written when a line does not fit any more', () => {
    const { buffer, written } = buffered(10);
    for (const line of ['1234\n', '6789\n', 'a\n', 'longer than that\n', 'b\n']) buffer.write(line);
    expect(written).toEqual(['1234\n6789\n', 'a\n', 'longer than that\n']);
    buffer.close();
    expect(written.at(-1)).toBe('b\n');
  });

  test('counts bytes, not characters', () => {
    const { buffer, written } = buffered(4);
    buffer.write('äö');
    buffer.write('x');
    expect(written).toEqual(['äö']);
    buffer.close();
  });

  test.each([1000, 1e15])('is written after some time: %d ms', (flushMs) => {
    vi.useFakeTimers();
    const { buffer, written } = buffered(100, flushMs);
    buffer.write('line\n');
    vi.advanceTimersByTime(999);
    expect(written).toEqual([]);
    vi.advanceTimersByTime(Math.min(flushMs, 2 ** 31));
    expect(written).toEqual(['line\n']);
    buffer.close();
    vi.useRealTimers();
  });
});
