/** Rules that another version of iptables wrote are found where they are to be deleted. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FAMILIES } from '../../../../src/model/ip.ts';
import { inside } from '../../../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../../system/support/namespace.ts';

let namespace: Namespace;
beforeEach(async (context) => {
  requireNamespaces(context);
  namespace = await openNamespace();
});
afterEach(() => namespace.close());

describe.each(FAMILIES)('%s', (family) => {
  it('deletes them, and its own beside them', async () => {
    const source = `
      import { piece } from './src/modes/iptables/rules/edit.ts';
      import { DIALECTS } from './src/modes/iptables/netlink/dialect.ts';
      import { RuleEncoder } from './src/modes/iptables/netlink/encodeRule.ts';
      import { NetlinkWriter } from './src/modes/iptables/netlink/writer.ts';
      import { directChannel } from './src/netlink/channel.ts';
      import { NETLINK_NETFILTER, NetlinkSocket } from './src/netlink/socket.ts';
      import { rawRules } from './test/modes/iptables/netlink/support/kernelRules.ts';
      const family = '${family}';
      const channel = directChannel(NetlinkSocket.open(NETLINK_NETFILTER));
      const writers = Object.values(DIALECTS).map((dialect) =>
        new NetlinkWriter(family, channel, new RuleEncoder({ family, dialect })));
      const rule = {
        matches: [{ kind: 'protocol', protocol: 'tcp' }, { kind: 'destinationPort', port: 80 },
          { kind: 'mark', value: 1, mask: 3, not: false }],
        target: { kind: 'return' },
      };
      const step = (parts) => ({ table: 'filter', pieces: [piece(undefined, parts)] });
      const counts = [];
      const note = () => counts.push(rawRules(family, 'filter').length);
      await writers[0].commit(step({ writes: [{ name: 'X', rules: [] }] }));
      for (const writer of writers) await writer.commit(step({ adds: [{ chain: 'X', rule, place: 'end' }] }));
      note();
      for (const _ of writers) {
        await writers[1].commit(step({ removes: [{ chain: 'X', rule }] }));
        note();
      }
      console.log(JSON.stringify(counts));
      process.exit(0);`;
    expect(await inside(namespace, `dialects-${family}`, source)).toEqual([3, 2, 1, 0]);
  });
});
