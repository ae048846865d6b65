/** Health-check node ports, asked as load balancers ask. */
import { describe, expect, test } from 'vitest';
import { useLab } from '../lab/requireLab.ts';
import { Daemon } from './daemon.ts';
import { fetchFrom, tryFetch } from './support/fetch.ts';
import { useInLab } from './support/use.ts';
import { manifests, type ServiceWords } from './cluster.ts';

const PORT = 31_999;
const WEB: ServiceWords = {
  name: 'web',
  ip: '10.96.1.1',
  ip6: 'fd00:96::1',
  nodePort: 30_080,
  extra: `  externalTrafficPolicy: Local
  healthCheckNodePort: ${PORT}
status: {loadBalancer: {ingress: [{ip: 203.0.113.5}]}}`,
  pods: 'abc',
};
const NODE = ['192.168.100.2', '[fd00:100::2]'];

function world(web: Partial<ServiceWords> = {}): string {
  return manifests([{ ...WEB, ...web }]).replace('type: NodePort', 'type: LoadBalancer');
}

describe('a health-check node port', () => {
  const lab = useLab();
  const daemon = useInLab(async () => {
    const made = await Daemon.create(lab().host('node1'));
    await made.write(world());
    await made.start();
    return made;
  });

  /** The whole answer, while so many ready pods are on this node. */
  async function expectCount(count: number): Promise<void> {
    for (const address of NODE) {
      const { status, headers, body } = await fetchFrom(
        lab().host('client'),
        `http://${address}:${PORT}/any/path`,
      );
      expect(status).toBe(count > 0 ? 200 : 503);
      expect(headers['content-type']).toBe('application/json');
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['x-load-balancing-endpoint-weight']).toBe(String(count));
      expect(body).toBe(
        `{\n\t"service": {\n\t\t"namespace": "shop",\n\t\t"name": "web"\n\t},\n\t"localEndpoints": ${count},\n\t"serviceProxyHealthy": true\n}`,
      );
    }
  }

  test('follows the ready endpoints of this node', async () => {
    await expectCount(2);
    await daemon().apply(world({ unready: 'b' }));
    await expectCount(1);
    await daemon().apply(world({ pods: 'cd' }));
    await expectCount(0);
    await daemon().apply(world());
    await expectCount(2);
  });

  test('answers every method', async () => {
    for (const method of ['HEAD', 'POST', 'DELETE']) {
      const { status } = await fetchFrom(lab().host('client'), `http://192.168.100.2:${PORT}/`, method);
      expect(status, `${method} /`).toBe(200);
    }
  });

  test('moves with its number, and goes with its service', async () => {
    const refused = async (port: number): Promise<boolean> =>
      (await tryFetch(lab().host('client'), `http://192.168.100.2:${port}/`)) === 'ECONNREFUSED';
    await daemon().apply(world().replace(String(PORT), '31998'));
    expect([await refused(PORT), await refused(31_998)]).toEqual([true, false]);
    await daemon().apply(manifests([{ name: 'other', ip: '10.96.1.2', pods: 'a' }]));
    expect(await refused(31_998)).toBe(true);
    await daemon().apply(world());
    await expectCount(2);
  });
});
