/** One question by HTTP to a program on this node. Node's `fetch` would load 50 ms of code for it. */
import { request } from 'node:http';

/** More than any answer that is asked for here; the rest is not read. */
const MOST_BYTES = 16 << 20;

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

/** `undefined`: nothing answers there in time. */
export function httpGet(url: string, limitMs: number): Promise<HttpAnswer | undefined> {
  return new Promise((resolve) => {
    const asked = request(url, { agent: false, signal: AbortSignal.timeout(limitMs) }, (answer) => {
      const { statusCode: status = 0 } = answer;
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (part: string) => {
        text += part;
        if (text.length > MOST_BYTES) answer.destroy();
      });
      answer.on('end', () => resolve({ status, text }));
      answer.on('error', () => resolve(undefined));
      answer.on('close', () => resolve(undefined));
    });
    asked.on('error', () => resolve(undefined));
    asked.end();
  });
}
