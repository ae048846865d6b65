/** Asks a page of the API, without a server. */
import type { Request, StreamingPage } from '../../../src/telemetry/http/server.ts';

export function requestTo(path: string, more: Partial<Request> = {}): Request {
  const [before = '', query = ''] = path.split('?');
  return {
    method: 'GET',
    path: before,
    query: new URLSearchParams(query),
    headers: {},
    signal: new AbortController().signal,
    text: () => Promise.resolve(''),
    ...more,
  };
}

export async function askPage(
  page: StreamingPage,
  path: string,
  more: Partial<Request> = {},
): Promise<{ readonly status: number; readonly text: string }> {
  const answer = await page(requestTo(path, more));
  if ('body' in answer) return { status: answer.status, text: String(answer.body) };
  let text = '';
  for await (const chunk of answer.chunks) text += chunk.toString();
  return { status: answer.status, text };
}
