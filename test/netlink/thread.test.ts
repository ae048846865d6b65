/** What the main thread does about its worker, whatever becomes of that. */
import { readdirSync } from 'node:fs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { addAddress, decodeLink, getLink, newLink } from '../../src/netlink/rtnetlink.ts';
import { type FaultName, faultCounts } from '../../src/faults.ts';
import { malformedMessage, type Message } from '../../src/netlink/codec.ts';
import { NETLINK_ROUTE } from '../../src/netlink/socket.ts';
import { NetlinkThread, type ThreadOptions, type WatchHandler } from '../../src/netlink/thread.ts';
import { type Ip, parseIp } from '../../src/model/ip.ts';
import {
  ANSWER,
  ANSWER_NOISE,
  CRASH,
  DEAF,
  FAIL,
  HEAR_NOISE,
  HEAR_OVERRUN,
  KEEP_SILENT,
  NEVER_STARTS,
  OBEDIENT,
} from './support/workerPrograms.ts';

const WITHIN = { timeout: 150_000 };
const REQUEST = getLink('lo');
const ANSWERED = { kind: 'answered', messages: [], interrupted: false };
const ENDED = expect.objectContaining({
  code: 'NETLINK_FAILED',
  message: 'netlink: its thread has ended',
}) as Error;
const CLOSED = expect.objectContaining({
  code: 'NETLINK_FAILED',
  message: 'netlink: its thread was closed',
}) as Error;

const count = (fault: FaultName): number => faultCounts().get(fault) ?? 0;

function raise(error: Error): never {
  throw error;
}

let thread: NetlinkThread | undefined;
afterEach(() => thread?.close());

async function start(options: ThreadOptions): Promise<NetlinkThread> {
  thread = await NetlinkThread.start({ restartPauseMs: 1, ...options });
  return thread;
}

function recorder(): WatchHandler & { readonly seen: string[] } {
  const seen: string[] = [];
  return {
    seen,
    messages: (messages: readonly Message[]) => seen.push(`heard ${messages.length}`),
    lost: () => seen.push('lost'),
  };
}

describe('a job', () => {
  it('is answered', async () => {
    const netlink = await start({ program: OBEDIENT });
    expect(await netlink.channel(ANSWER).request(REQUEST)).toEqual(ANSWERED);
    expect(await netlink.channel(ANSWER).apply([newLink('a', 'dummy'), newLink('b', 'dummy')])).toEqual([
      { state: 'done' },
      { state: 'done' },
    ]);
    expect(await netlink.channel(ANSWER).dumpAll([REQUEST, REQUEST])).toEqual([ANSWERED, ANSWERED]);
  });

  it('of nothing needs no worker', async () => {
    const netlink = await start({ program: OBEDIENT });
    expect(await netlink.channel(CRASH).apply([])).toEqual([]);
    expect(await netlink.channel(CRASH).dumpAll([])).toEqual([]);
  });

  it('fails alone when it times out', async () => {
    const netlink = await start({ program: OBEDIENT });
    const [failed, answered] = await Promise.allSettled([
      netlink.channel(FAIL).request(REQUEST),
      netlink.channel(ANSWER).request(REQUEST),
    ]);
    expect(failed).toMatchObject({
      status: 'rejected',
      reason: { code: 'NETLINK_TIMED_OUT', message: 'job 1' },
    });
    expect(answered).toEqual({ status: 'fulfilled', value: ANSWERED });
  });

  it('fails alone when its answer cannot be read', async () => {
    const netlink = await start({ program: OBEDIENT });
    await expect(netlink.channel(ANSWER_NOISE).request(REQUEST)).rejects.toMatchObject({
      code: 'NETLINK_MALFORMED',
    });
    expect(await netlink.channel(ANSWER).request(REQUEST)).toEqual(ANSWERED);
  });

  it('that cannot be written is refused here', async () => {
    const netlink = await start({ program: OBEDIENT });
    await expect(netlink.channel(ANSWER).apply([newLink('x'.repeat(70_000), 'dummy')])).rejects.toMatchObject(
      {
        code: 'NETLINK_MALFORMED',
      },
    );
  });

  it('of many changes is not sent to its end once a part of it has failed', async () => {
    const netlink = await start({ program: OBEDIENT });
    const ip = parseIp('10.0.0.1') ?? ('' as Ip);
    const changes = Array.from({ length: 50_000 }, () => addAddress(1, ip));
    await expect(netlink.channel(FAIL).apply(changes)).rejects.toMatchObject({ message: 'job 1' });
    // Of a hundred parts, those that were under way. The next job tells how many there were.
    await expect(netlink.channel(FAIL).request(REQUEST)).rejects.toMatchObject({
      message: expect.stringMatching(/^job [2-9]$/) as string,
    });
  });
});

describe('a worker that ends by itself', () => {
  it('fails what is under way, and is replaced at the next use', async () => {
    const netlink = await start({ program: OBEDIENT });
    const crashes = count('netlink_thread_crashed');
    const [silent, crashing] = await Promise.allSettled([
      netlink.channel(KEEP_SILENT).request(REQUEST),
      netlink.channel(CRASH).request(REQUEST),
    ]);
    expect(silent).toEqual({ status: 'rejected', reason: ENDED });
    expect(crashing).toMatchObject({ reason: { cause: { message: 'an accident' } } });
    expect(count('netlink_thread_crashed') - crashes).toBe(1);
    expect(await netlink.channel(ANSWER).request(REQUEST)).toEqual(ANSWERED);
  });

  it('is replaced for the sake of those who watch, and they are told', async () => {
    const netlink = await start({ program: OBEDIENT });
    const handler = recorder();
    const open = await netlink.watch(ANSWER, [1], handler);
    await expect(netlink.channel(CRASH).request(REQUEST)).rejects.toEqual(ENDED);
    await vi.waitFor(() => expect(handler.seen).toEqual(['heard 1', 'heard 1', 'lost']), WITHIN);
    await open.close();
  });

  it('is not replaced at once', async () => {
    const netlink = await start({ program: OBEDIENT, restartPauseMs: 1_000_000 });
    await expect(netlink.channel(CRASH).request(REQUEST)).rejects.toEqual(ENDED);
    const [waiting] = await Promise.allSettled([netlink.channel(ANSWER).request(REQUEST), netlink.close()]);
    expect(waiting).toEqual({ status: 'rejected', reason: CLOSED });
  });

  it('leaves no descriptor behind', async () => {
    const count = (): number => readdirSync('/proc/self/fd').length;
    const netlink = await start({ program: OBEDIENT });
    const crash = async (): Promise<void> => {
      await expect(netlink.channel(CRASH).request(REQUEST)).rejects.toEqual(ENDED);
    };
    await crash();
    const before = count();
    for (let round = 0; round < 5; round++) await crash();
    expect(count()).toBeLessThanOrEqual(before);
  });

  it('before it has begun fails whoever starts it', async () => {
    await expect(start({ program: NEVER_STARTS })).rejects.toEqual(ENDED);
  });
});

describe('a watch', () => {
  it('hears, until it is closed', async () => {
    const netlink = await start({ program: OBEDIENT });
    const handler = recorder();
    const open = await netlink.watch(ANSWER, [1], handler);
    await vi.waitFor(() => expect(handler.seen).toEqual(['heard 1']), WITHIN);
    await open.close();
    await open.close();
  });

  it('that hears noise reads everything again, once for all of it, and hears what follows', async () => {
    const before = count('netlink_malformed');
    const netlink = await start({ program: OBEDIENT });
    const handler = recorder();
    await netlink.watch(HEAR_NOISE, [1], handler);
    await vi.waitFor(() => expect(handler.seen).toEqual(['lost', 'heard 1', 'lost']), WITHIN);
    expect(count('netlink_malformed') - before).toBe(3);
  });

  it.each([
    ['cannot be decoded', (): never => raise(malformedMessage('an attribute claims 7 of 3 bytes'))],
    ['meets a fault of ours', (): never => raise(new TypeError('undefined is not a function'))],
  ])('whose message %s reads everything again, and goes on', async (_, fail) => {
    const before = count('netlink_malformed');
    const netlink = await start({ program: OBEDIENT });
    const handler = { ...recorder(), messages: fail };
    await netlink.watch(ANSWER, [1], handler);
    await vi.waitFor(() => expect(handler.seen).toEqual(['lost']), WITHIN);
    expect(count('netlink_malformed') - before).toBe(1);
    expect(await netlink.channel(ANSWER).request(REQUEST)).toEqual(ANSWERED);
  });

  it('that is told of an overrun reads everything again', async () => {
    const before = count('netlink_overrun');
    const netlink = await start({ program: OBEDIENT });
    const handler = recorder();
    await netlink.watch(HEAR_OVERRUN, [1], handler);
    await vi.waitFor(() => expect(handler.seen).toEqual(['heard 1', 'lost', 'heard 1']), WITHIN);
    expect(count('netlink_overrun') - before).toBe(1);
  });

  it('that is refused says so', async () => {
    const netlink = await start({ program: OBEDIENT });
    await expect(netlink.watch(FAIL, [99], recorder())).rejects.toMatchObject({ message: 'job 1' });
  });
});

describe('closing', () => {
  it('fails what is under way, and all that follows', async () => {
    const netlink = await start({ program: OBEDIENT });
    const silent = Promise.allSettled([netlink.channel(KEEP_SILENT).request(REQUEST)]);
    await netlink.channel(ANSWER).request(REQUEST);
    await netlink.close();
    expect(await silent).toEqual([{ status: 'rejected', reason: ENDED }]);
    await expect(netlink.channel(ANSWER).request(REQUEST)).rejects.toEqual(CLOSED);
    await expect(netlink.watch(ANSWER, [1], recorder())).rejects.toEqual(CLOSED);
    await netlink.close();
  });

  it('ends a worker that does not listen', async () => {
    const netlink = await start({ program: DEAF });
    await expect(netlink.close()).resolves.toBeUndefined();
  });
});

it('works from the sources, which are compiled for it', async () => {
  const netlink = await start({});
  const reply = await netlink.channel(NETLINK_ROUTE).request(getLink('lo'));
  const [message] = reply.kind === 'answered' ? reply.messages : [];
  expect(message && decodeLink(message.payload)).toMatchObject({ index: 1, name: 'lo' });
});
