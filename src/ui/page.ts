/** What a browser asks for: the page's files, and the API behind them. */
import { type Answer, plain, type Request, type StreamingPage } from '../telemetry/http/server.ts';
import type { Coding, PageFile } from './files.ts';
import { type Guard, SECURITY_HEADERS } from './guard.ts';

interface UiPageOptions {
  readonly files: () => ReadonlyMap<string, PageFile>;
  /** What answers below `/v1/`. */
  readonly api: StreamingPage;
  readonly guard: Guard;
}

export function uiPage({ files, api, guard }: UiPageOptions): StreamingPage {
  return async (request) => {
    const refused = guard.refuse(request);
    if (refused) return secured(refused);
    if (request.path.startsWith('/v1/')) {
      const unknown = guard.authorize(request);
      return secured(unknown ?? (await api(request)));
    }
    return secured(fileAnswer(files(), request));
  };
}

function secured<T extends Pick<Answer, 'headers'>>(answer: T): T {
  return { ...answer, headers: { 'Cache-Control': 'no-store', ...answer.headers, ...SECURITY_HEADERS } };
}

/** Views have addresses of their own, and all of them are the one document. */
function fileAnswer(files: ReadonlyMap<string, PageFile>, { method, path, headers }: Request): Answer {
  if (method !== 'GET' && method !== 'HEAD')
    return plain(405, 'method not allowed\n', { Allow: 'GET, HEAD' });
  const file = files.get(path) ?? (/\.\w+$/.test(path) ? undefined : files.get('/index.html'));
  if (!file) return plain(404, 'not found\n');
  const coding = codingOf(headers['accept-encoding']);
  return {
    status: 200,
    headers: {
      'Content-Type': file.type,
      'Cache-Control': file.isForever ? 'public, max-age=31536000, immutable' : 'no-cache',
      Vary: 'Accept-Encoding',
      ...(coding !== 'identity' && { 'Content-Encoding': coding }),
    },
    body: method === 'HEAD' ? '' : (file.bytes[coding] ?? ''),
  };
}

function codingOf(accepted: string | string[] | undefined): Coding {
  const names = new Set(
    String(accepted ?? '')
      .split(',')
      .map((part) => part.trim())
      .filter((part) => !/;\s*q=0(?:\.0*)?$/.test(part))
      .map((part) => part.split(';')[0]),
  );
  return names.has('br') ? 'br' : names.has('gzip') ? 'gzip' : 'identity';
}
