/** Nodes that are broken in one way each, in IPVS mode: one run of `doctor` names the cause and the cure. */
import { readFile, writeFile } from 'node:fs/promises';
import { ONE_OF_EACH_KIND } from '../../daemon/oneOfEachKind.ts';
import { contains } from '../../daemon/mismatch.ts';
import { onStage } from '../../daemon/stage.ts';

/** Of the whole machine: only its first network namespace has it to write. */
const MAX = '/proc/sys/net/netfilter/nf_conntrack_max';

export const BROKEN_NODE = onStage('broken nodes', {
  'a full table of connections': async (stage) => {
    await stage.serve(ONE_OF_EACH_KIND);
    const before = await readFile(MAX, 'utf8');
    const count = async (): Promise<number> =>
      Number(await stage.node.run(['cat', '/proc/sys/net/netfilter/nf_conntrack_count']));
    const max = (await count()) + 4;
    await writeFile(MAX, String(max));
    try {
      // Each is one more connection, until the kernel drops its first packet.
      for (let port = 0; port < 8; port++)
        await stage.client.request('tcp', '192.168.100.2', 9999, { timeoutMs: 300 });
      const answered = await stage.daemon.doctor();
      contains(answered, 'the table of tracked connections is full');
      contains(answered, `of ${max} connections`);
      contains(answered, 'sysctl -w net.netfilter.nf_conntrack_max=131072');
    } finally {
      await writeFile(MAX, before.trim());
    }
  },

  'a virtual server deleted, before the next look': async (stage) => {
    await stage.serve(ONE_OF_EACH_KIND);
    const [server = ''] = (await stage.words()).servers;
    const [, address = ''] = /^TCP (\S+)/.exec(server) ?? [];
    await stage.node.run(['ipvsadm', '-D', '-t', address]);
    const answered = await stage.daemon.doctor();
    contains(answered, 'the IPv4 rules in the kernel are not those that are planned');
    contains(answered, `missing: virtual server TCP ${address}`);
    contains(answered, 'Junction repairs what another program changed');
  },
});
