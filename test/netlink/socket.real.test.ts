/** Sockets, counters and generic netlink on the real kernel. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inside } from '../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../system/support/namespace.ts';

describe('in a namespace', () => {
  let namespace: Namespace;
  beforeEach(async (context) => {
    requireNamespaces(context);
    namespace = await openNamespace();
  });
  afterEach(() => namespace.close());

  it('makes a counter once, and reads it', async () => {
    const answer = await inside(
      namespace,
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

  it('reads a dump to its end, an error by name, and which module a family lacks', async () => {
    const answer = await inside(
      namespace,
      'netlink',
      `import { NETLINK_GENERIC, NETLINK_ROUTE } from './src/netlink/socket.ts';
       import { SyncSocket } from './test/netlink/support/syncSocket.ts';
       import { findFamily } from './test/netlink/support/readers.ts';
       const socket = SyncSocket.open(NETLINK_ROUTE);
       const links = socket.request({ type: 18, flags: 0x300, payload: (w) => w.raw(new Uint8Array(16)) });
       const none = socket.request({ type: 18, flags: 0, payload: (w) => w.raw(new Uint8Array(16)).string(3, 'none0') });
       const generic = SyncSocket.open(NETLINK_GENERIC);
       console.log(JSON.stringify([links.kind, links.messages.length > 0, links.interrupted, none,
         findFamily(generic, 'nlctrl', ''), findFamily(generic, 'NO_SUCH', 'no_such')]));`,
    );
    expect(answer).toEqual([
      'answered',
      true,
      false,
      { kind: 'refused', errno: 19, name: 'ENODEV' },
      { state: 'present', id: 16 },
      { state: 'absent', reason: 'the kernel has no NO_SUCH: load the module no_such' },
    ]);
  });

  it('binds exactly the name that iptables binds', async () => {
    const answer = await inside(
      namespace,
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
