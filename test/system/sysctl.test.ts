import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ensureSysctl, readSysctl } from '../../src/system/sysctl.ts';

describe('sysctl', () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'junction-'));
    mkdirSync(join(root, 'net/ipv4'), { recursive: true });
    writeFileSync(join(root, 'net/ipv4/ip_forward'), '0\n');
    writeFileSync(join(root, 'net/ipv4/range'), '1\t2\n');
  });
  afterEach(() => rmSync(root, { recursive: true }));

  it('reads', () => expect(readSysctl('net/ipv4/ip_forward', { root })).toBe('0'));

  it('writes, and says what was there', () => {
    expect(ensureSysctl('net/ipv4/ip_forward', 1, { root })).toEqual({
      name: 'net/ipv4/ip_forward',
      previous: '0',
      value: '1',
      changed: true,
    });
    expect(readFileSync(join(root, 'net/ipv4/ip_forward'), 'utf8')).toBe('1');
  });

  it.each([
    ['net/ipv4/ip_forward', '0'],
    ['net/ipv4/range', '1 2'],
  ])('does not write what is so already: %s', (name, value) => {
    utimesSync(join(root, name), 0, 0);
    expect(ensureSysctl(name, value, { root }).changed).toBe(false);
    expect(statSync(join(root, name)).mtimeMs).toBe(0);
  });

  it('names a setting that the kernel lacks', () => {
    expect(() => readSysctl('net/nosuch', { root })).toThrow(
      expect.objectContaining({ code: 'SYSCTL_MISSING', message: 'cannot read sysctl net/nosuch: ENOENT' }),
    );
  });

  it('names a write that the kernel refuses', () => {
    expect(() => ensureSysctl('kernel/ostype', 'Junction')).toThrow(
      expect.objectContaining({ code: 'SYSCTL_DENIED' }),
    );
  });

  it('reads the real /proc/sys', () => expect(readSysctl('kernel/ostype')).toBe('Linux'));
});
