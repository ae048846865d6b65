/** What becomes of packets where the IPVS mode might do otherwise than the others. */
import { manifests } from '../../../e2e/cluster.ts';
import { becomes, same } from '../../daemon/mismatch.ts';
import { onStage } from '../../daemon/stage.ts';
import { answerers, answerersSoon } from '../../daemon/traffic.ts';

const API = '10.96.1.1';
const OUTSIDE = '203.0.113.5';
const NODE = '192.168.100.2';
/** Of the node, on the link to the client. */
const NODE_OUTSIDE = '192.0.2.1';
/** Where the node itself listens, on all of its addresses. */
const OWN_PORT = 9999;

export const PACKETS = onStage('packets', {
  'policy Local without an endpoint here: silence for clients outside, an answer for pods': async (stage) => {
    const extra = `  externalTrafficPolicy: Local\nstatus: {loadBalancer: {ingress: [{ip: ${OUTSIDE}}]}}`;
    const pod = stage.lab.host('pod-b');
    await stage.serve(
      manifests([{ name: 'web', ip: API, nodePort: 30080, extra, pods: 'cd' }]).replace(
        'NodePort',
        'LoadBalancer',
      ),
    );
    await becomes(() => answerers(pod, OUTSIDE), 'pod-c pod-d');
    const seen = await Promise.all([
      answerersSoon(stage.client, OUTSIDE),
      answerersSoon(stage.client, NODE, 30080),
      answerers(stage.client, API),
      answerers(pod, API),
    ]);
    same(seen, ['timeout', 'timeout', 'pod-c pod-d', 'pod-c pod-d']);
  },

  'internal policy Local without an endpoint here: silence for pods': async (stage) => {
    const extra = '  internalTrafficPolicy: Local';
    const pod = stage.lab.host('pod-b');
    await stage.serve(manifests([{ name: 'web', ip: API, extra, pods: 'a' }]));
    await becomes(() => answerers(pod, API), 'pod-a');
    await stage.serve(manifests([{ name: 'web', ip: API, extra, pods: 'cd' }]));
    await becomes(() => answerersSoon(pod, API), 'timeout');
  },

  "an external IP that is the node's own: the service answers there, and so does the node": async (stage) => {
    const extra = `  externalIPs: [${NODE_OUTSIDE}]`;
    await stage.serve(manifests([{ name: 'web', ip: API, extra, pods: 'ac' }]));
    await becomes(() => answerers(stage.client, NODE_OUTSIDE), 'pod-a pod-c');
    same(await answerers(stage.client, NODE_OUTSIDE, OWN_PORT), 'node1');
    same(await stage.addresses(), [`${API}/32`]);
    await stage.serve(manifests([{ name: 'web', ip: API, pods: 'ac' }]));
    await becomes(() => answerers(stage.client, NODE_OUTSIDE), 'refused');
    same(await answerers(stage.client, NODE_OUTSIDE, OWN_PORT), 'node1');
  },

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
