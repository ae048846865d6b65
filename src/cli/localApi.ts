/**
 * Asks the running proxy: HTTP over its unix socket (docs/reference/api.md). Imports nothing heavy, so that an answer does not
 * wait for the program that asks.
 */
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { errorCode, JunctionError, messageOf } from '../errors.ts';
import { QuestionError } from '../explain/question.ts';
import { printableLine } from '../text/printable.ts';

/** A question takes milliseconds; a proxy that is busy with its first sync of a large cluster, seconds. */
export const ANSWER_LIMIT_MS = 30_000;

interface AskOptions {
  /** 0: an answer may pause for as long as it likes. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** GET unless given. */
  readonly method?: string;
  /** A status besides 200 that is an answer. */
  readonly accepts?: number;
  /** Called when the proxy has begun to answer. */
  readonly onOpen?: () => void;
}

type Query = Readonly<Record<string, string | undefined>>;

/** `/v1/explain/shop/web?port=http` */
export function apiPath(parts: readonly string[], query: Query = {}): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : `${name}=${encodeURIComponent(value)}`,
  );
  return `/v1/${parts.map(encodeURIComponent).join('/')}${given.length > 0 ? `?${given.join('&')}` : ''}`;
}

export async function askJson<T>(socket: string, path: string, options: AskOptions = {}): Promise<T> {
  const text = await textOf(chunksOf(await ask(socket, path, options), socket));
  try {
    return JSON.parse(text) as T;
  } catch {
    throw malformed(socket, `the answer to ${path} is not JSON`);
  }
}

/** One value a line, as they come. Ends when the proxy ends the answer. */
export async function* askLines<T>(
  socket: string,
  path: string,
  options: AskOptions = {},
): AsyncGenerator<T> {
  const response = await ask(socket, path, options);
  options.onOpen?.();
  let rest = '';
  response.setEncoding('utf8');
  try {
    for await (const chunk of response as AsyncIterable<string>) {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line !== '') yield parseLine(line, socket, path) as T;
    }
  } catch (error) {
    throw error instanceof JunctionError ? error : unreachable(socket, error);
  }
  if (rest !== '') yield parseLine(rest, socket, path) as T;
}

function parseLine(line: string, socket: string, path: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw malformed(socket, `a line of the answer to ${path} is not JSON`);
  }
}

async function ask(socket: string, path: string, options: AskOptions): Promise<IncomingMessage> {
  const response = await askRaw(socket, path, options);
  const { statusCode } = response;
  if (statusCode === 200 || (statusCode !== undefined && statusCode === options.accepts)) return response;
  const text = await textOf(chunksOf(response, socket));
  throw refusal(socket, statusCode ?? 0, text);
}

/** The answer whatever its status is. Rejects where none comes. */
export function askRaw(
  socket: string,
  path: string,
  { timeoutMs = ANSWER_LIMIT_MS, signal, method = 'GET' }: AskOptions,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = request({
      // Without an agent, which would look at names and addresses first (5 ms).
      createConnection: () => connect(socket),
      method,
      path,
      headers: { host: 'localhost', accept: 'application/json' },
      ...(signal && { signal }),
    });
    outgoing.once('response', resolve);
    outgoing.once('error', (error) => reject(unreachable(socket, error)));
    if (timeoutMs > 0)
      outgoing.setTimeout(timeoutMs, () =>
        outgoing.destroy(new Error(`no answer within ${timeoutMs / 1000} s`)),
      );
    outgoing.end();
  });
}

async function* chunksOf(response: IncomingMessage, socket: string): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) yield chunk;
  } catch (error) {
    throw unreachable(socket, error);
  }
}

async function textOf(chunks: AsyncIterable<Buffer>): Promise<string> {
  const all: Buffer[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return Buffer.concat(all).toString('utf8');
}

const OTHER_SOURCES =
  'or name another source: --manifests FILE|DIR, --kubeconfig FILE, --bundle FILE. --api-socket PATH names another socket.';

/** What a system call said about the socket, and the cure for each. */
const CURES: Readonly<Record<string, readonly [problem: string, cure: string]>> = {
  ENOENT: [
    'no Junction runs here: there is no such socket',
    `Start it (junction run), ${OTHER_SOURCES} In a cluster: kubectl junction … asks the pod of a node.`,
  ],
  ECONNREFUSED: [
    'the Junction that made this socket has ended',
    `Start it again (junction run; its log says why it ended), ${OTHER_SOURCES}`,
  ],
  EACCES: [
    'this user may not use the socket',
    'Run the command as root, or let others in with --api-socket-mode of junction run.',
  ],
  EPERM: [
    'this user may not use the socket',
    'Run the command as root, or let others in with --api-socket-mode of junction run.',
  ],
};

function unreachable(socket: string, error: unknown): JunctionError {
  const [problem, hint] = CURES[errorCode(error) ?? ''] ?? [messageOf(error), undefined];
  return new JunctionError('LOCAL_API_UNREACHABLE', `${socket}: ${problem}`, { hint, cause: error });
}

function malformed(socket: string, problem: string): JunctionError {
  return new JunctionError('LOCAL_API_MALFORMED', `${socket}: ${problem}`);
}

/** `{ "error": { "code", "message", "hint" } }` */
function refusal(socket: string, status: number, text: string): Error {
  const { message, hint } = refusalTexts(text);
  if (message === undefined) return malformed(socket, `answered ${status} without a reason`);
  if (status >= 400 && status < 500)
    return new QuestionError(message, hint ?? 'Ask otherwise; docs/reference/api.md has all questions.');
  return new JunctionError('LOCAL_API_REFUSED', `${socket}: ${printableLine(message)}`, { hint });
}

function refusalTexts(text: string): { readonly message?: string | undefined; readonly hint?: string } {
  try {
    const { error } = JSON.parse(text) as { readonly error?: { message?: unknown; hint?: unknown } };
    const { message, hint } = error ?? {};
    return {
      message: typeof message === 'string' ? message : undefined,
      ...(typeof hint === 'string' && { hint }),
    };
  } catch {
    return {};
  }
}
