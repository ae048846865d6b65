import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { makeToken, TokenFile } from '../../src/ui/token.ts';
import { keptLog } from '../telemetry/http/support.ts';
import { FakeClock } from '../time/fakeClock.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'junction-token-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function stage(path = join(folder, 'state/ui-token')) {
  const { log, lines } = keptLog();
  const clock = new FakeClock();
  return { path, lines, clock, tokens: new TokenFile({ path, log, clock }) };
}

test('a token has 256 bits, and no two are equal', () => {
  const tokens = Array.from({ length: 100 }, makeToken);
  expect(new Set(tokens).size).toBe(100);
  for (const token of tokens) {
    expect(token).toMatch(/^[\w-]{43}$/);
    expect(Buffer.from(token, 'base64url')).toHaveLength(32);
  }
});

describe('a file', () => {
  test('that is not there is made, for its owner only, and never logged', () => {
    const { tokens, path, lines } = stage();
    const token = tokens.current() ?? '';
    expect(token).toMatch(/^[\w-]{43}$/);
    expect(readFileSync(path, 'utf8')).toBe(`${token}\n`);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(stage().tokens.current()).toBe(token);
    expect(lines).toEqual([]);
  });

  test('that is replaced counts soon', async () => {
    const { tokens, path, clock } = stage();
    tokens.current();
    const next = makeToken();
    writeFileSync(path, next);
    await clock.advance(2000);
    expect(tokens.current()).toBe(next);
  });

  test.each([
    ['empty', ''],
    ['short', 'letmein'],
    ['two lines', `${'a'.repeat(30)}\n${'b'.repeat(30)}`],
    ['other characters', `${'a'.repeat(30)}ä`],
    ['huge', 'a'.repeat(5000)],
  ])('that is %s lets nobody in, and is logged once', async (_, text) => {
    const { tokens, path, lines, clock } = stage(join(folder, 'token'));
    writeFileSync(path, text);
    expect(tokens.current()).toBeUndefined();
    await clock.advance(2000);
    expect(tokens.current()).toBeUndefined();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('nobody is let in');
    if (text !== '') expect(lines[0]).not.toContain(text.slice(0, 7));
    const good = makeToken();
    writeFileSync(path, `  ${good}\n\n`);
    await clock.advance(2000);
    expect(tokens.current()).toBe(good);
  });

  test('that gets broken leaves the last good token in force', async () => {
    const { tokens, path, lines, clock } = stage();
    const token = tokens.current();
    writeFileSync(path, '');
    await clock.advance(2000);
    expect(tokens.current()).toBe(token);
    expect(lines[0]).toContain('the last one stays in force');
  });

  test('that cannot be made is logged, and made as soon as it can be', async () => {
    const { tokens, path, lines, clock } = stage(join(folder, 'file/ui-token'));
    writeFileSync(join(folder, 'file'), '');
    expect(tokens.current()).toBeUndefined();
    expect(lines[0]).toContain('Cannot use the token file of the page');
    rmSync(join(folder, 'file'));
    mkdirSync(join(folder, 'file'));
    chmodSync(join(folder, 'file'), 0o700);
    await clock.advance(2000);
    expect(tokens.current()).toBe(readFileSync(path, 'utf8').trim());
  });
});
