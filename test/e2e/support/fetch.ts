/** HTTP from inside a host of the lab. */
import type { Host } from '../../../lab/host.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const SCRIPT = `
const [url, method, headers] = process.argv.slice(1);
require('node:http').request(url, { method, headers: JSON.parse(headers), timeout: 50_000 }, (answer) => {
  let body = '';
  answer.setEncoding('utf8').on('data', (text) => { body += text; });
  answer.on('end', () => console.log(JSON.stringify({ status: answer.statusCode, headers: answer.headers, body })));
}).on('error', (error) => console.log(JSON.stringify({ error: error.code ?? error.message }))).end();
`;

type SentHeaders = Readonly<Record<string, string>>;

export async function fetchFrom(
  host: Host,
  url: string,
  method = 'GET',
  headers: SentHeaders = {},
): Promise<Answer> {
  const answer = await tryFetch(host, url, method, headers);
  if (typeof answer === 'string') throw new Error(`${host.name} ${method} ${url}: ${answer}`);
  return answer;
}

/** An answer, or why there is none. */
export async function tryFetch(
  host: Host,
  url: string,
  method = 'GET',
  headers: SentHeaders = {},
): Promise<Answer | string> {
  const text = await host.run([process.execPath, '-e', SCRIPT, url, method, JSON.stringify(headers)]);
  const parsed = JSON.parse(text) as Answer | { readonly error: string };
  return 'error' in parsed ? parsed.error : parsed;
}
