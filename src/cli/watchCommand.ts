/** `junction watch`: what the running proxy does, a line for each event, until Ctrl-C. */
import { setTimeout as sleep } from 'node:timers/promises';
import { flagValue, type ParsedFlags } from '../config/commandLine.ts';
import { isJunctionError } from '../errors.ts';
import { eventText, serviceOfEvent, timeOfEvent } from '../explain/events.ts';
import type { WatchEvent } from '../explain/types.ts';
import type { Colour, Paint } from '../text/paint.ts';
import { printableLine } from '../text/printable.ts';
import { matcherOf } from '../text/matcher.ts';
import { OWN_FLAGS } from './ownFlags.ts';
import { apiPath, askLines } from './localApi.ts';
import type { Output } from './output.ts';
import { socketOf } from './questionSource.ts';
import { cellOf, painter } from './table.ts';

const RETRY_MS = 500;

export async function watchCommand(parsed: ParsedFlags, output: Output): Promise<number> {
  const print = printerOf(parsed, output);
  const file = flagValue(parsed, OWN_FLAGS.bundle);
  if (file !== '') {
    const { readBundle } = await import('./nodeCommands.ts');
    for (const event of (await readBundle(file)).events) print(event);
    return 0;
  }
  const socket = await socketOf(parsed);
  const say = (text: string): void => output.err(`junction: ${printableLine(`${socket}: ${text}`)}\n`);
  let isAway = false;
  for (let isFirst = true; !isClosed(output); isFirst = false) {
    let isOpen = false;
    try {
      const onOpen = (): void => {
        isOpen = true;
        if (isAway) say('the proxy answers again');
        isAway = false;
      };
      await stream(socket, output, print, onOpen);
    } catch (error) {
      if (isClosed(output)) break;
      const isGone = isJunctionError(error, 'LOCAL_API_UNREACHABLE');
      if (!isGone || (isFirst && !isOpen)) throw error;
    }
    if (!isAway && !isClosed(output)) say('the proxy has ended; waiting for it');
    isAway = true;
    await sleep(RETRY_MS, undefined, output.closed && { signal: output.closed }).catch(() => undefined);
  }
  return 0;
}

/** Nobody reads what is printed. */
function isClosed({ closed }: Output): boolean {
  return closed?.aborted === true;
}

type Print = (event: WatchEvent) => void;

async function stream(socket: string, output: Output, print: Print, onOpen: () => void): Promise<void> {
  const { closed } = output;
  const options = { timeoutMs: 0, onOpen, ...(closed && { signal: closed }) };
  for await (const event of askLines<WatchEvent>(socket, apiPath(['watch']), options)) {
    print(event);
    // The proxy drops events of who reads too slowly, and says so; here they would only wait in memory.
    await output.finished?.();
    if (isClosed(output)) return;
  }
}

function printerOf(parsed: ParsedFlags, output: Output): Print {
  const namespace = flagValue(parsed, OWN_FLAGS.namespace);
  const [pattern] = parsed.arguments;
  const matches = matcherOf(pattern);
  const isForAll = namespace === '' && pattern === undefined;
  const isAsked = (event: WatchEvent): boolean => {
    const service = serviceOfEvent(event);
    if (isForAll || service === undefined) return isForAll || event.kind === 'lost';
    return matches(service) && (namespace === '' || service.startsWith(`${namespace}/`));
  };
  const paint = painter(process.stdout);
  const isJson = flagValue(parsed, OWN_FLAGS.eventOutput) === 'json';
  return (event) => {
    if (!isAsked(event)) return;
    if (isJson) output.out(`${JSON.stringify(event)}\n`);
    else output.painted(eventLine(event, paint));
  };
}

const COLOURS: Readonly<Record<WatchEvent['kind'], Colour>> = {
  change: 'cyan',
  sync: 'green',
  foreign: 'yellow',
  refused: 'red',
  conntrack: 'dim',
  lost: 'yellow',
};
const KIND_WIDTH = 10;

/** `14:03:20.123  IPv4  change    shop/web: …` */
function eventLine(event: WatchEvent, paint: Paint): string {
  const family = 'family' in event ? event.family : '';
  const isBad = event.kind === 'sync' && event.error !== undefined;
  const kind = paint(isBad ? 'red' : COLOURS[event.kind], event.kind.padEnd(KIND_WIDTH));
  return `${paint('dim', timeOfDay(timeOfEvent(event)))}  ${family.padEnd(4)}  ${kind}${cellOf(eventText(event))}\n`;
}

/** `14:03:20.123`, in this machine's time zone. */
function timeOfDay(at: number): string {
  const time = new Date(at);
  const two = (value: number): string => String(value).padStart(2, '0');
  const ms = String(time.getMilliseconds()).padStart(3, '0');
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}.${ms}`;
}
