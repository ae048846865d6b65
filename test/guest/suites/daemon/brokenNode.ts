/** Nodes that are broken in one way each, in IPVS mode: one run of `doctor` names the cause and the cure. */
import { readFile, writeFile } from 'node:fs/promises';
import { manifests } from '../../../e2e/cluster.ts';
import { IPVS_FLAGS } from '../../daemon/guestDaemon.ts';
import { becomes, contains } from '../../daemon/mismatch.ts';
import { onStage } from '../../daemon/stage.ts';

/** Nothing is read back, and so repaired, while the test looks. */
const NO_LOOK = [...IPVS_FLAGS, '--ipvs-sync-period=1h'];
const SERVER = 'TCP 10.96.1.1:80';
const SMALL = manifests([{ name: 'web', ip: '10.96.1.1', pods: 'ac' }]);
/** Of the whole machine: only its first network namespace has it to write. */
const MAX = '/proc/sys/net/netfilter/nf_conntrack_max';

export const BROKEN_NODE = onStage('broken nodes', {
  'a full table of connections': async (stage) => {
    await stage.serve(SMALL, NO_LOOK);
    const before = await readFile(MAX, 'utf8');
    const count = async (): Promise<number> =>
      Number(await stage.node.run(['cat', '/proc/sys/net/netfilter/nf_conntrack_count']));
    const max = (await count()) + 4;
    await writeFile(MAX, String(max));
    try {
      // Each is one more connection, until the kernel drops its first packet.
      for (let port = 0; port < 8; port++)
        await stage.client.request('tcp', '192.168.100.2', 9999, { timeoutMs: 300 });
      const answered = await stage.daemon.doctor('--only=conntrack');
      contains(answered, 'the table of tracked connections is full');
      contains(answered, `of ${max} connections`);
      contains(answered, 'sysctl -w net.netfilter.nf_conntrack_max=131072');
    } finally {
      await writeFile(MAX, before.trim());
    }
  },

  'a virtual server deleted, before the next look': async (stage) => {
    await stage.serve(SMALL, NO_LOOK);
    await becomes(() => stage.server(SERVER), `${SERVER} rr -> 10.244.1.11:8080, 10.244.2.11:8080`);
    await stage.node.run(['ipvsadm', '-D', '-t', '10.96.1.1:80']);
    const answered = await stage.daemon.doctor('--only=rules');
    contains(answered, 'the IPv4 rules in the kernel are not those that are planned');
    contains(answered, `missing: virtual server ${SERVER}`);
    contains(answered, 'Junction repairs what another program changed');
  },
});
