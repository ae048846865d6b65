/** What becomes of packets where the IPVS mode might do otherwise than the others. */
import { manifests } from '../../../e2e/cluster.ts';
import { becomes, same } from '../../daemon/mismatch.ts';
import { onStage } from '../../daemon/stage.ts';
import { answerers } from '../../daemon/traffic.ts';

const API = '10.96.1.1';
/** Where the node itself listens, on all of its addresses. */
const OWN_PORT = 9999;

export const PACKETS = onStage('packets', {
  'an external IP that becomes an address of the node, and ceases to be one': async (stage) => {
    const ip = '198.51.100.24';
    await stage.serve(manifests([{ name: 'web', ip: API, extra: `  externalIPs: [${ip}]`, pods: 'ac' }]));
    await becomes(() => stage.addresses(), [`${API}/32`, `${ip}/32`]);
    await becomes(() => answerers(stage.client, ip), 'pod-a pod-c');
    same(await answerers(stage.client, ip, OWN_PORT), 'refused');
    await stage.node.run(['ip', 'address', 'add', `${ip}/32`, 'dev', 'eth0']);
    await becomes(() => stage.addresses(), [`${API}/32`]);
    await becomes(() => answerers(stage.client, ip, OWN_PORT), 'node1');
    same(await answerers(stage.client, ip), 'pod-a pod-c');
    await stage.node.run(['ip', 'address', 'delete', `${ip}/32`, 'dev', 'eth0']);
    await becomes(() => stage.addresses(), [`${API}/32`, `${ip}/32`]);
    await becomes(() => answerers(stage.client, ip), 'pod-a pod-c');
    same(await answerers(stage.client, ip, OWN_PORT), 'refused');
  },
});
