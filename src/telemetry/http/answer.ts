/** Requests and answers as data, so that a page is a function from one to the other. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';

export interface Request {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
  /** The body, or `undefined` where it is longer than that. */
  text(maxBytes: number): Promise<string | undefined>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | Readable;
}

export type Page = (request: Request) => Answer | Promise<Answer>;

/** Browsers must not guess another type than the one that is named. */
const NOSNIFF = { 'X-Content-Type-Options': 'nosniff' } as const;

export function json(status: number, body: string, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, headers: { 'Content-Type': 'application/json', ...NOSNIFF, ...headers }, body };
}

export function plain(status: number, body: string): Answer {
  return { status, headers: { 'Content-Type': 'text/plain; charset=utf-8', ...NOSNIFF }, body };
}

export function html(body: string): Answer {
  return { status: 200, headers: { 'Content-Type': 'text/html; charset=utf-8', ...NOSNIFF }, body };
}

export function download(fileName: string, body: string | Readable): Answer {
  return {
    status: 200,
    headers: {
      'Content-Type': 'application/octet-stream',
      ...NOSNIFF,
      'Content-Disposition': `attachment; filename="${fileName}"`,
    },
    body,
  };
}

export const NOT_FOUND: Answer = plain(404, '404 page not found\n');

/** A page that only reads: other methods are told so. */
export function readOnly(page: Page): Page {
  return (request) =>
    request.method === 'GET' || request.method === 'HEAD'
      ? page(request)
      : {
          ...plain(405, 'method not allowed\n'),
          headers: { ...plain(405, '').headers, Allow: 'GET, HEAD' },
        };
}
