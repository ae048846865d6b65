/** Health-check node ports, asked as load balancers ask. */
import { describe, expect, test } from 'vitest';
import { useLab } from '../lab/requireLab.ts';
import { Daemon } from './daemon.ts';
import { eventually } from './support/eventually.ts';
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
      await untilCount(address, count);
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

  async function untilCount(address: string, count: number): Promise<void> {
    await eventually(`${count} local endpoints at ${address}`, async () => {
      const answer = await tryFetch(lab().host('node1'), `http://${address}:${PORT}/`);
      return (
        typeof answer === 'object' && answer.headers['x-load-balancing-endpoint-weight'] === String(count)
      );
    });
  }

  test('follows the ready endpoints of this node', async () => {
    await expectCount(2);
    await daemon().write(world({ unready: 'b' }));
    await expectCount(1);
    await daemon().write(world({ pods: 'cd' }));
    await expectCount(0);
    await daemon().write(world());
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
    await daemon().write(world().replace(String(PORT), '31998'));
    await eventually('the old port is closed', () => refused(PORT));
    await eventually('the new port is open', async () => !(await refused(31_998)));
    await daemon().write(manifests([{ name: 'other', ip: '10.96.1.2', pods: 'a' }]));
    await eventually('the new port is closed', () => refused(31_998));
    await daemon().write(world());
    await expectCount(2);
  });
});
