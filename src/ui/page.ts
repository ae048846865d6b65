/** What a browser asks for: the page's files, and the API behind them. */
import {
  type Answer,
  plain,
  type Request,
  type StreamedAnswer,
  type StreamingPage,
} from '../telemetry/http/server.ts';
import { type PageFile, readPageFiles } from './files.ts';
import { type AccessCheck, isApi, securityHeaders } from './access.ts';

interface UiPageOptions {
  /** By path. */
  readonly files?: ReadonlyMap<string, PageFile>;
  /** What answers below `/v1/`. */
  readonly api: StreamingPage;
  readonly access: AccessCheck;
}

export function uiPage({ files: given, api, access }: UiPageOptions): StreamingPage {
  let files = given;
  return async (request) => {
    const answer = await answerOf(request);
    const added = securityHeaders(request);
    // An answer that is passed on may have some of them.
    const names = new Set(Object.keys(added).map((name) => name.toLowerCase()));
    const own = Object.entries(answer.headers).filter(([name]) => !names.has(name.toLowerCase()));
    return { ...answer, headers: { 'Cache-Control': 'no-store', ...Object.fromEntries(own), ...added } };
  };

  async function answerOf(request: Request): Promise<Answer | StreamedAnswer> {
    const refused = access.refuse(request) ?? refuseBody(request);
    if (refused) return refused;
    if (!isApi(request.path)) return fileAnswer((files ??= readPageFiles()), request);
    return (await access.authorize(request)) ?? api(request);
  }
}

/** What nobody reads must not be sent for long. */
function refuseBody({ headers }: Request): Answer | undefined {
  if ((headers['content-length'] ?? '0') === '0' && headers['transfer-encoding'] === undefined)
    return undefined;
  return plain(413, 'a question has no body\n', { Connection: 'close' });
}

/** Views have addresses of their own, and all of them are the one document. */
function fileAnswer(files: ReadonlyMap<string, PageFile>, { method, path }: Request): Answer {
  if (method !== 'GET' && method !== 'HEAD')
    return plain(405, 'method not allowed\n', { Allow: 'GET, HEAD' });
  // Files have no folders.
  const file = files.get(path) ?? (/^\/[^/]*\.\w+$/.test(path) ? undefined : files.get('/index.html'));
  if (!file) return plain(404, 'not found\n');
  const kept = file.isForever ? 'public, max-age=31536000, immutable' : 'no-cache';
  return { status: 200, headers: { 'Content-Type': file.type, 'Cache-Control': kept }, body: file.bytes };
}
