/** `junction watch`: what the running proxy does, a line for each event, until Ctrl-C. */
import { setTimeout as sleep } from 'node:timers/promises';
import { flagValue, type ParsedFlags } from '../config/commandLine.ts';
import { isJunctionError } from '../errors.ts';
import type { ChangeRecord, WatchEvent } from '../explain/types.ts';
import { serviceOfPortId } from '../model/serviceTracker.ts';
import type { Colour, Paint } from '../text/paint.ts';
import { printableLine } from '../text/printable.ts';
import { counted, durationText } from '../text/ages.ts';
import { OWN_FLAGS } from './ownFlags.ts';
import { apiPath, askLines } from './localApi.ts';
import { matcherOf } from './objectNames.ts';
import type { Output } from './output.ts';
import { socketOf } from './questionSource.ts';
import { cellOf, painter } from './table.ts';

const RETRY_MS = 500;

export async function watchCommand(parsed: ParsedFlags, output: Output): Promise<number> {
  const print = printerOf(parsed, output);
  const file = flagValue(parsed, OWN_FLAGS.bundle);
  if (file !== '') {
    const { readBundle } = await import('./nodeCommands.ts');
    for (const change of (await readBundle(file)).changes) print({ kind: 'change', ...change });
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
    const service = serviceOf(event);
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

/** Most events are about one; a sync, a clean-up of flows and other programs are about all. */
function serviceOf(event: WatchEvent): string | undefined {
  if (event.kind === 'change') return event.service;
  return event.kind === 'refused' ? serviceOfPortId(event.servicePort) : undefined;
}

const COLOURS: Readonly<Record<WatchEvent['kind'], Colour>> = {
  change: 'cyan',
  sync: 'green',
  foreign: 'yellow',
  refused: 'red',
  conntrack: 'dim',
  proof: 'red',
  lost: 'yellow',
};
const KIND_WIDTH = 10;

/** `14:03:20.123  IPv4  change    shop/web: …` */
function eventLine(event: WatchEvent, paint: Paint): string {
  const at = event.kind === 'change' ? (event.committedAt ?? event.plannedAt) : event.at;
  const family = 'family' in event ? event.family : '';
  const isBad = event.kind === 'sync' && event.error !== undefined;
  const kind = paint(isBad ? 'red' : COLOURS[event.kind], event.kind.padEnd(KIND_WIDTH));
  return `${paint('dim', timeOfDay(at))}  ${family.padEnd(4)}  ${kind}${cellOf(eventText(event))}\n`;
}

function eventText(event: WatchEvent): string {
  switch (event.kind) {
    case 'change':
      return changeText(event);
    case 'sync': {
      const { sync, commits, objects, ms, cause, error } = event;
      const what = `${sync}, ${counted(commits, 'commit')}, ${counted(objects, 'object')} in ${durationText(ms)}`;
      return `${what}: ${cause}${error === undefined ? '' : `; failed: ${error}`}`;
    }
    case 'foreign': {
      const { program, objects, repairedMs } = event;
      const repaired = repairedMs === undefined ? '' : `; repaired in ${durationText(repairedMs)}`;
      return `${program} changed ${objects.join(', ')}${repaired}`;
    }
    case 'refused':
      return `the kernel refused ${event.servicePort}: ${event.error}`;
    case 'conntrack':
      return `deleted ${counted(event.deleted, 'stale flow')} in ${durationText(event.ms)}`;
    case 'proof':
      return `${event.packet}: planned ${event.planned}, in the kernel ${event.kernel}`;
    case 'lost':
      return `${counted(event.events, 'event')} lost: this reader was too slow`;
  }
}

/** What happened, what it changed, and how long that took. */
function changeText({ service, causes, effects, seenAt, committedAt, refused }: ChangeRecord): string {
  const effect = effects.length === 0 ? 'nothing to change in the plan' : effects.join(', ');
  const written =
    committedAt === undefined
      ? 'not written yet'
      : `written ${durationText(committedAt - seenAt)} after it was seen`;
  const end = refused === undefined ? written : `the kernel refused it: ${refused}`;
  return `${service}: ${causes.join(', ')} → ${effect}; ${end}`;
}

/** `14:03:20.123`, in this machine's time zone. */
function timeOfDay(at: number): string {
  const time = new Date(at);
  const two = (value: number): string => String(value).padStart(2, '0');
  const ms = String(time.getMilliseconds()).padStart(3, '0');
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}.${ms}`;
}
