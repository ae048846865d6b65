/** Who may ask, and by which page. A browser on this machine runs pages of others too, and their scripts must learn nothing. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Log } from '../log/log.ts';
import type { Clock } from '../time/clock.ts';
import { type Answer, json, plain, type Request } from '../telemetry/http/server.ts';
import { isLoopback } from '../model/ip.ts';
import { parseAuthority } from './authority.ts';

/** Nothing but files of this server: no inline script or style, no text as markup, no frame, no form, no base. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
];

const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': POLICY.join('; '),
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
};

/** Over plain HTTP, browsers take it from loopback alone, and complain about it elsewhere. */
const OPENER_POLICY = { 'Cross-Origin-Opener-Policy': 'same-origin' };

export function securityHeaders({ headers: { host = '' } }: Request): Readonly<Record<string, string>> {
  const asked = parseAuthority(host);
  const isOnLoopback = asked && ('ip' in asked ? isLoopback(asked.ip) : asked.name === 'localhost');
  return { ...SECURITY_HEADERS, ...(isOnLoopback && OPENER_POLICY) };
}

export interface AccessOptions {
  /** Names of this machine, beside its addresses and `localhost`. */
  readonly names: readonly string[];
  /** What must be sent to learn anything. Unset: nothing. */
  readonly token?: string | undefined;
  readonly log: Log;
  readonly clock: Clock;
}

/** An answer to a wrong token waits so long; those beyond so many that wait are turned away at once. */
const WRONG_TOKEN_MS = 1000;
const MOST_WAITING = 32;
const LOG_EVERY_MS = 60_000;

export class AccessCheck {
  readonly #options: AccessOptions;
  readonly #names: ReadonlySet<string>;
  #waiting = 0;
  #loggedAt: number | undefined;

  constructor(options: AccessOptions) {
    this.#options = options;
    this.#names = new Set(['localhost', ...options.names.map((name) => name.toLowerCase())]);
  }

  /** A name that another's DNS gave to this address, or a script of another page. */
  refuse({ headers, authority, path }: Request): Answer | undefined {
    const host = authority ?? headers.host;
    if (!this.#isKnown(headers.host) || !this.#isKnown(host))
      return plain(421, 'this server does not answer by that name; ask for it by its address\n');
    if (!isOwnPage(headers, host ?? '', isApi(path)))
      return plain(403, 'pages of other origins may not ask here\n');
    return undefined;
  }

  /** The right token is never made to wait, whoever else is guessing. */
  async authorize({ headers: { authorization }, client, signal }: Request): Promise<Answer | undefined> {
    const { token } = this.#options;
    if (token === undefined) return undefined;
    if (authorization === undefined) return REFUSAL;
    const [, sent = ''] = /^Bearer (.+)$/i.exec(authorization) ?? [];
    if (isSame(sent, token)) return undefined;
    this.#logWrong(client);
    if (this.#waiting >= MOST_WAITING)
      return plain(429, 'too many wrong tokens\n', { 'Retry-After': '1', Connection: 'close' });
    await this.#wait(signal);
    return REFUSAL;
  }

  async #wait(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    this.#waiting++;
    await new Promise<void>((resolve) => {
      const cancel = clock.schedule(WRONG_TOKEN_MS, resolve);
      signal.addEventListener('abort', () => {
        cancel();
        resolve();
      });
    });
    this.#waiting--;
  }

  #logWrong(client: string | undefined): void {
    const { clock, log } = this.#options;
    if (this.#loggedAt !== undefined && clock.now() - this.#loggedAt < LOG_EVERY_MS) return;
    this.#loggedAt = clock.now();
    log.warn('A wrong token was sent to the page', { client });
  }

  /** An address cannot be another's name: rebinding needs DNS. */
  #isKnown(text: string | undefined): boolean {
    const host = parseAuthority(text ?? '');
    return host !== undefined && ('ip' in host || this.#names.has(host.name));
  }
}

export function isApi(path: string): boolean {
  return path === '/v1' || path.startsWith('/v1/');
}

const REFUSAL: Answer = json(
  401,
  `${JSON.stringify({
    error: {
      code: 'token',
      message: 'a token is needed here',
      hint: 'It is in the link that junction ui prints.',
    },
  })}\n`,
  { 'WWW-Authenticate': 'Bearer' },
);

/** Links of others may open the page, in a window of its own. Nothing else of theirs may ask. */
function isOwnPage(headers: Request['headers'], host: string, asksApi: boolean): boolean {
  const { origin } = headers;
  if (origin !== undefined && origin.toLowerCase() !== `http://${host.toLowerCase()}`) return false;
  const site = headers['sec-fetch-site'];
  if (site === undefined || site === 'same-origin' || site === 'none') return true;
  return !asksApi && headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
}

/** In a time that does not depend on where they differ. */
function isSame(a: string, b: string): boolean {
  const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(a), hash(b));
}
