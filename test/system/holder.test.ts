import { once } from 'node:events';
import { readlinkSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { holderOf, openDescriptors, printHolder, socketHolders } from '../../src/system/procfs.ts';

const OURSELVES = holderOf(process.pid);

async function listening(): Promise<Server> {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return server;
}

function ownSockets(): ReadonlySet<string> {
  const own = [...openDescriptors()].filter(({ pid }) => pid === process.pid);
  return new Set(own.flatMap(({ descriptor }) => inodeOf(descriptor) ?? []));
}

/** What was open while the descriptors were listed may be closed by now. */
function inodeOf(descriptor: string): string | undefined {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${descriptor}`))?.[1];
  } catch {
    return undefined;
  }
}

describe('the holders of sockets', () => {
  test('are found in one walk, by inode', async () => {
    const before = ownSockets();
    await listening();
    await listening();
    const inodes = new Set([...ownSockets()].filter((inode) => !before.has(inode)));
    const holders = [...socketHolders(inodes).values()];
    expect(holders.length).toBeGreaterThanOrEqual(2);
    expect(new Set(holders.map(printHolder))).toEqual(new Set([printHolder(OURSELVES)]));
  });

  test('nobody has one that is not there', () => {
    expect(socketHolders(new Set(['0']))).toEqual(new Map());
    expect(socketHolders(new Set())).toEqual(new Map());
  });
});

describe('in words', () => {
  test.each([
    ['a process that cannot be seen from here', undefined],
    ['pid 7', { pid: 7, command: undefined }],
    ['pid 7 (iptables-restor)', { pid: 7, command: 'iptables-restor' }],
  ])('%s', (text, holder) => expect(printHolder(holder)).toBe(text));
});
