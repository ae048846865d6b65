/** The token that the page asks for, in a file. It is never logged. */
import { linkSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { dirname } from 'node:path';
import { attempt, errorCode } from '../errors.ts';
import type { Log } from '../log/log.ts';
import type { Clock } from '../time/clock.ts';

interface TokenFileOptions {
  readonly path: string;
  readonly log: Log;
  readonly clock: Clock;
}

/** What a Bearer token may consist of (RFC 6750), and 128 bits of it at least. */
const TOKEN = /^[A-Za-z0-9._~+/-]{22,512}=*$/;
const MOST_BYTES = 4096;
/** A token that was replaced is refused after so long. */
const FRESH_MS = 2000;

/** 256 bits. */
export function makeToken(): string {
  return randomBytes(32).toString('base64url');
}

export class TokenFile {
  readonly #options: TokenFileOptions;
  #token: string | undefined;
  #readAt: number | undefined;
  #problem = '';

  constructor(options: TokenFileOptions) {
    this.#options = options;
  }

  /** As the file has it now; the last good one while that cannot be read. Without any, nobody gets in. */
  current(): string | undefined {
    const { clock } = this.#options;
    if (this.#readAt === undefined || clock.now() - this.#readAt >= FRESH_MS) {
      this.#readAt = clock.now();
      this.#refresh();
    }
    return this.#token;
  }

  #refresh(): void {
    const { path, log } = this.#options;
    try {
      this.#token = read(path) ?? make(path);
      this.#problem = '';
    } catch (error) {
      const problem = errorCode(error) ?? String(error);
      if (problem === this.#problem) return;
      this.#problem = problem;
      const effect = this.#token === undefined ? 'nobody is let in' : 'the last one stays in force';
      log.error('Cannot use the token file of the page', { tokenFile: path, err: error, effect });
    }
  }
}

function read(path: string): string | undefined {
  try {
    const { size } = statSync(path);
    const text = size > MOST_BYTES ? '' : readFileSync(path, 'utf8').trim();
    if (!TOKEN.test(text))
      throw new Error('must hold one token of at least 22 letters, digits or any of - . _ ~ + / =');
    return text;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** From its first moment on whole, and for its owner only. */
function make(path: string): string {
  const token = makeToken();
  const draft = `${path}.${process.pid}`;
  attempt(() => mkdirSync(dirname(path), { mode: 0o755 }));
  rmSync(draft, { force: true });
  try {
    writeFileSync(draft, `${token}\n`, { mode: 0o600, flag: 'wx' });
    linkSync(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
  return token;
}
