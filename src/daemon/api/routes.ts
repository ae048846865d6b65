/** The local API: which path is answered by what. It reads, and changes nothing. */
import { attempt, isJunctionError } from '../../errors.ts';
import { QuestionError } from '../../explain/question.ts';
import {
  type Answer,
  json,
  type Request,
  type StreamedAnswer,
  type StreamingPage,
} from '../../telemetry/http/server.ts';

/** What went wrong with a question, and what to do. */
interface ApiError {
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
  /** Which parameter is the reason. */
  readonly parameter?: string | undefined;
}

type ApiAnswer = Answer | StreamedAnswer;

/** A question that cannot be answered as it was asked. */
export class RefusedQuestion extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string | undefined;
  readonly parameter: string | undefined;

  constructor(status: number, code: string, message: string, hint?: string, parameter?: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
    this.parameter = parameter;
  }
}

export interface Question {
  /** What stands for `*` in the route. */
  readonly names: readonly string[];
  readonly query: URLSearchParams;
  readonly signal: AbortSignal;
}

export interface ApiRoute {
  /** With a star for each name. */
  readonly path: string;
  /** Parameters that it takes; others are refused, so that a misspelt one is noticed. */
  readonly parameters: readonly string[];
  answer(question: Question): ApiAnswer | Promise<ApiAnswer>;
}

const NDJSON = 'application/x-ndjson';
const LONGEST_PARAMETER = 1024;

export function apiPage(routes: readonly ApiRoute[], report: (error: unknown) => void): StreamingPage {
  return async (request) => {
    try {
      return await answerOf(routes, request);
    } catch (error) {
      if (error instanceof RefusedQuestion) return refused(error.status, error);
      if (error instanceof QuestionError) return refused(400, error);
      if (isJunctionError(error)) return refused(500, error);
      report(error);
      return refused(500, { code: 'internal', message: 'the proxy failed to answer; its log says why' });
    }
  };
}

function answerOf(routes: readonly ApiRoute[], request: Request): ApiAnswer | Promise<ApiAnswer> {
  const { method, query, headers, signal } = request;
  if (method !== 'GET')
    throw new RefusedQuestion(405, 'method', `${method} is not allowed: this API reads only`);
  if ((headers['content-length'] ?? '0') !== '0' || headers['transfer-encoding'] !== undefined)
    throw new RefusedQuestion(413, 'body', 'a question has no body');
  const parts = request.path.split('/').map((part) => attempt(() => decodeURIComponent(part)) ?? '\0');
  for (const route of routes) {
    const names = namesOf(route.path.split('/'), parts);
    if (!names) continue;
    for (const [name, value] of query) {
      if (!route.parameters.includes(name))
        throw new RefusedQuestion(400, 'parameter', `there is no parameter "${name}" here`);
      if (value.length > LONGEST_PARAMETER)
        throw new RefusedQuestion(400, 'parameter', `${name} is longer than ${LONGEST_PARAMETER} characters`);
    }
    return route.answer({ names, query, signal });
  }
  throw new RefusedQuestion(
    404,
    'not-found',
    'there is nothing at this path',
    'docs/reference/api.md has all paths',
  );
}

function namesOf(pattern: readonly string[], parts: readonly string[]): readonly string[] | undefined {
  if (pattern.length !== parts.length) return undefined;
  const names: string[] = [];
  for (const [index, expected] of pattern.entries()) {
    const part = parts[index] ?? '';
    if (expected === '*' && part !== '') names.push(part);
    else if (part !== expected) return undefined;
  }
  return names;
}

/** The answer to a question that cannot be answered. */
export function refused(status: number, { code, message, hint, parameter }: ApiError): Answer {
  const error = { code, message, ...(hint !== undefined && { hint }), ...(parameter && { parameter }) };
  return json(status, `${JSON.stringify({ error })}\n`, status === 405 ? { Allow: 'GET' } : {});
}

export function data(value: unknown): Answer {
  return json(200, `${JSON.stringify(value)}\n`);
}

export function lines(chunks: AsyncIterable<string>, isEndless = false): StreamedAnswer {
  return { status: 200, headers: { 'Content-Type': NDJSON }, chunks, isEndless };
}

/** A tab of a machine that sleeps must not hold a queue. The heartbeat comes four times as often. */
const MOST_STALLED_MS = 60_000;

/** The same as server-sent events, for browsers. */
export function events(chunks: AsyncIterable<string>): StreamedAnswer {
  const headers = { 'Content-Type': 'text/event-stream; charset=utf-8', 'X-Accel-Buffering': 'no' };
  return {
    status: 200,
    headers,
    chunks: eventBlocks(chunks),
    isEndless: true,
    mostStalledMs: MOST_STALLED_MS,
  };
}

/** Nothing ever happens here, and who asks must not wait for it. */
export function noEvents(): Answer {
  return { status: 200, headers: { 'Content-Type': NDJSON, 'X-Junction-Events': 'none' }, body: '' };
}

async function* eventBlocks(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const chunk of chunks)
    yield chunk
      .split('\n')
      .slice(0, -1)
      .map((line) => (line === '' ? ':\n\n' : `data: ${line}\n\n`))
      .join('');
}

/** Characters that are sent at one time. */
const CHUNK = 64 * 1024;

type Pause = () => Promise<void> | undefined;

/** A JSON array with one item in a line, made and sent in slices. */
export function listOfItems<T>(items: Iterable<T>, pause: Pause): StreamedAnswer {
  return {
    status: 200,
    headers: { 'Content-Type': 'application/json' },
    chunks: chunked(jsonLines(items), pause),
  };
}

function* jsonLines<T>(items: Iterable<T>): Generator<string> {
  yield '[';
  let separator = '\n';
  for (const item of items) {
    yield separator + JSON.stringify(item);
    separator = ',\n';
  }
  yield '\n]\n';
}

/** Titles, then a line for each row; cells have tabs between them. */
export function tableOfRows(titles: readonly string[], rows: Iterable<string>, pause: Pause): StreamedAnswer {
  const headers = { 'Content-Type': 'text/tab-separated-values; charset=utf-8' };
  return { status: 200, headers, chunks: chunked(rows, pause, `${titles.join('\t')}\n`) };
}

async function* chunked(lines: Iterable<string>, pause: Pause, start = ''): AsyncGenerator<string> {
  let chunk = start;
  for (const line of lines) {
    chunk += line;
    if (chunk.length >= CHUNK) {
      yield chunk;
      chunk = '';
    }
    const waiting = pause();
    if (waiting) await waiting;
  }
  yield chunk;
}
