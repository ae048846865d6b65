/** Netlink sockets belong to their thread's network namespace, so these run in a process inside one. */
import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bundle } from '../system/support/bundle.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../system/support/namespace.ts';

describe('in a namespace', () => {
  let namespace: Namespace;
  beforeEach(async (context) => {
    requireNamespaces(context);
    namespace = await openNamespace();
  });
  afterEach(() => namespace.close());

  const inside = async (name: string, source: string): Promise<unknown> => {
    const script = await bundle(name, source);
    const { stdout, stderr } = await namespace.runner([process.execPath, script]);
    await rm(script);
    expect(stderr).toBe('');
    return JSON.parse(stdout);
  };

  it('makes a counter once, and reads it', async () => {
    const answer = await inside(
      'nfacct',
      `import { ensureNfacct, readNfacct } from './src/netlink/nfacct.ts';
       const steps = [ensureNfacct('drops'), ensureNfacct('drops'), readNfacct('drops'), readNfacct('none') ?? null,
         ensureNfacct('a-name-that-is-too-long-for-the-kernel')];
       console.log(JSON.stringify(steps, (_, value) => typeof value === 'bigint' ? Number(value) : value));`,
    );
    expect(answer).toEqual([
      { state: 'created' },
      { state: 'exists' },
      { name: 'drops', packets: 0, bytes: 0 },
      null,
      { state: 'unavailable', reason: expect.stringContaining('longer than 31 bytes') },
    ]);
  });

  it('reads a dump to its end, and an error by name', async () => {
    const answer = await inside(
      'netlink',
      `import { NetlinkSocket, NETLINK_ROUTE } from './src/netlink/socket.ts';
       const socket = NetlinkSocket.open(NETLINK_ROUTE);
       const links = socket.request({ type: 18, flags: 0x300, payload: (w) => w.raw(new Uint8Array(16)) });
       const none = socket.request({ type: 18, flags: 0, payload: (w) => w.raw(new Uint8Array(16)).string(3, 'none0') });
       socket.close();
       console.log(JSON.stringify([links.kind, links.messages.length > 0, links.interrupted, none]));`,
    );
    expect(answer).toEqual(['answered', true, false, { kind: 'refused', errno: 19, name: 'ENODEV' }]);
  });

  it('binds exactly the name that iptables binds', async () => {
    const answer = await inside(
      'socket',
      `import { readFileSync } from 'node:fs';
       import { takeXtablesLocks } from './src/modes/iptables/locks.ts';
       const locks = await takeXtablesLocks({ path: process.env.XTABLES_LOCKFILE });
       const names = readFileSync('/proc/net/unix', 'utf8').split('\\n').map((line) => line.split(' ').at(-1));
       locks.release();
       console.log(JSON.stringify(names.filter((name) => name.includes('xtables'))));`,
    );
    expect(answer).toEqual(['@xtables']);
  });
});
