/** Passes the page's questions on to the running proxy, and its answers back as they come. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { errorCode, isJunctionError, type JunctionError } from '../../errors.ts';
import { refused } from '../../daemon/api/routes.ts';
import type { StreamingPage } from '../../telemetry/http/server.ts';
import { askRaw } from '../localApi.ts';

/** The proxy says something every 15 s on a stream, answers most questions within seconds, and doctor's within two minutes. */
const SILENCE_MS = 150_000;
/** Of one connection, not of the answer. */
const HOP = new Set(['connection', 'keep-alive', 'transfer-encoding', 'date']);

/** What is said while no proxy answers; its error, unless somebody knows better. */
type Away = (error: JunctionError) => Parameters<typeof refused>[1];

export function relay(socket: string, away: Away = (error) => error): StreamingPage {
  return async ({ method, path, query, signal }) => {
    const search = query.toString();
    const whole = search === '' ? path : `${path}?${search}`;
    let response: IncomingMessage;
    try {
      response = await askRaw(socket, whole, { method, signal, timeoutMs: SILENCE_MS });
    } catch (error) {
      if (isJunctionError(error)) return refused(statusOf(error), away(error));
      throw error;
    }
    return {
      status: response.statusCode ?? 502,
      headers: passedOn(response.headers),
      chunks: response as AsyncIterable<Buffer>,
      isEndless: path === '/v1/watch',
    };
  };
}

/** Of a proxy that does not answer: it may come back, unless this user may not ask it. */
function statusOf({ cause }: Error): number {
  return ['EACCES', 'EPERM'].includes(errorCode(cause) ?? '') ? 403 : 503;
}

function passedOn(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      typeof value !== 'string' || HOP.has(name) ? [] : [[name, value]],
    ),
  );
}
