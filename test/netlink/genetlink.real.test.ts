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

  it('finds a family, and says which module is missing', async () => {
    const answers = await inside(
      namespace,
      'genetlink',
      `import { findFamily } from './test/netlink/support/readers.ts';
       import { NETLINK_GENERIC, NetlinkSocket } from './src/netlink/socket.ts';
       const socket = NetlinkSocket.open(NETLINK_GENERIC);
       console.log(JSON.stringify([findFamily(socket, 'nlctrl', ''), findFamily(socket, 'NO_SUCH', 'no_such')]));`,
    );
    expect(answers).toEqual([
      { state: 'present', id: 16 },
      { state: 'absent', reason: 'the kernel has no NO_SUCH: load the module no_such' },
    ]);
  });
});
