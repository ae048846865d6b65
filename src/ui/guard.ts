/** Who may ask, and by which page. A browser on this machine runs pages of others too, and their scripts must learn nothing. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { type Answer, json, plain, type Request } from '../telemetry/http/server.ts';

export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
};

interface GuardOptions {
  /** Names by which this server may be asked for, without a port: `localhost`, `127.0.0.1`, `[::1]`. */
  readonly hosts: readonly string[];
  /** Where it is bound beyond loopback. */
  readonly token?: string | undefined;
}

export class Guard {
  readonly #options: GuardOptions;

  constructor(options: GuardOptions) {
    this.#options = options;
  }

  /** A name that somebody else's DNS gave to this address, or a script of another page. */
  refuse({ headers }: Request): Answer | undefined {
    const { host, origin } = headers;
    if (!this.#isKnown(host))
      return plain(421, 'this server does not answer by that name; ask for it by its address\n');
    if (origin !== undefined && origin !== `http://${host}`)
      return plain(403, 'pages of other origins may not ask here\n');
    const site = headers['sec-fetch-site'];
    const isNavigation = headers['sec-fetch-mode'] === 'navigate';
    if (site !== undefined && site !== 'same-origin' && site !== 'none' && !isNavigation)
      return plain(403, 'pages of other origins may not ask here\n');
    return undefined;
  }

  authorize({ headers: { authorization } }: Request): Answer | undefined {
    const { token } = this.#options;
    if (token === undefined || isSame(authorization ?? '', `Bearer ${token}`)) return undefined;
    const error = {
      code: 'token',
      message: 'a token is needed here',
      hint: 'The log of Junction has the link with it, or the file that --ui-token-file names.',
    };
    return json(401, `${JSON.stringify({ error })}\n`, { 'WWW-Authenticate': 'Bearer' });
  }

  #isKnown(host: string | undefined): boolean {
    const name = host?.replace(/:\d+$/, '').toLowerCase();
    return name !== undefined && this.#options.hosts.includes(name);
  }
}

/** In a time that does not depend on where they differ. */
function isSame(a: string, b: string): boolean {
  const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(a), hash(b));
}
