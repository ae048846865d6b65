/** Streams of events, read inside a host of the lab as tabs read them. */
import type { WatchEvent } from '../../../src/explain/types.ts';
import type { Host } from '../../../lab/host.ts';

/** Prints what each of them gets, and how it ends. */
const SCRIPT = `
const [url, count] = process.argv.slice(1);
const say = (tab, what) => console.log(JSON.stringify({ tab, ...what }));
for (let tab = 0; tab < Number(count); tab++)
  require('node:http').get(url, { agent: false }, (answer) => {
    say(tab, { status: answer.statusCode, type: answer.headers['content-type'] });
    answer.setEncoding('utf8').on('data', (text) => say(tab, { text }));
    answer.on('end', () => say(tab, { end: 'whole' })).on('error', () => say(tab, { end: 'cut off' }));
  }).on('error', (error) => say(tab, { end: error.code }));
`;

interface Said {
  readonly tab: number;
  readonly status?: number;
  readonly type?: string;
  readonly text?: string;
  readonly end?: string;
}

export interface OpenStreams {
  /** Of those that are open: status and type. */
  readonly opened: readonly string[];
  readonly ends: readonly string[];
  /** Of one of them. */
  events(tab: number): readonly WatchEvent[];
  close(): void;
}

export function openStreams(host: Host, url: string, count = 1): OpenStreams {
  const child = host.spawn([process.execPath, '-e', SCRIPT, url, String(count)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const texts = new Map<number, string>();
  const opened: string[] = [];
  const ends: string[] = [];
  let rest = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const { tab, status, type, text = '', end } = JSON.parse(line) as Said;
      if (status !== undefined) opened.push(`${status} ${type}`);
      if (end !== undefined) ends.push(end);
      texts.set(tab, (texts.get(tab) ?? '') + text);
    }
  });
  return {
    opened,
    ends,
    events: (tab) =>
      [...(texts.get(tab) ?? '').matchAll(/^data: (.*)\n\n/gm)].map(
        ([, json = '']) => JSON.parse(json) as WatchEvent,
      ),
    close: () => child.kill(),
  };
}
