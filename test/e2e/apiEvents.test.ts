/** What operators learn from `kubectl get events`. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { useLab } from '../lab/requireLab.ts';
import { ApiNode } from './support/api/apiNode.ts';
import { eventually } from './support/eventually.ts';
import { tryFetch } from './support/fetch.ts';
import { useInLab } from './support/use.ts';
import { nodeObject, objects } from './cluster.ts';

const PORT = 31_999;
const EXTRA = `  externalTrafficPolicy: Local
  healthCheckNodePort: ${PORT}`;
const WEB = objects([{ name: 'web', ip: '10.96.1.1', nodePort: 30_080, extra: EXTRA, pods: 'abc' }]).map(
  (object) =>
    object.kind === 'Service'
      ? { ...object, spec: { ...(object['spec'] as object), type: 'LoadBalancer' } }
      : object,
);

interface EventBody {
  readonly reason: string;
  readonly note: string;
}

describe('events', () => {
  const lab = useLab();
  const node = useInLab(() => ApiNode.create(lab().host('node1'), [nodeObject()]));

  async function eventsOf(reason: string): Promise<readonly EventBody[]> {
    const events = await node().server.call('events');
    return events.map(({ body }) => body as EventBody).filter((event) => event.reason === reason);
  }

  test('ports that somebody has, for metrics and for health checks, are told, and taken once they are free', async () => {
    const { host } = node();
    const squatter = await host.serve([PORT, 10_249].map((port) => ({ protocol: 'tcp', port })));
    const program = await node().serve('token', '--iptables-min-sync-period=0s');
    await program.says(
      /"Metrics server failed" err="starting metrics server failed on 127.0.0.1:10249: listen EADDRINUSE/,
    );
    await node().put(...WEB);
    await eventually('the event', async () => (await eventsOf('FailedToStartServiceHealthcheck')).length > 0);
    const [event] = await eventsOf('FailedToStartServiceHealthcheck');
    expect(event).toMatchObject({
      action: 'Listen',
      type: 'Warning',
      regarding: { apiVersion: 'v1', kind: 'Service', namespace: 'shop', name: 'web' },
      metadata: { namespace: 'shop' },
    });
    expect(event?.note).toMatch(
      /^node node1 failed to start healthcheck "shop\/web" on port 31999: listen EADDRINUSE[^"]*$/,
    );

    await squatter.close();
    await node().put(...objects([{ name: 'other', ip: '10.96.1.2', pods: 'a' }]));
    await eventually('an answer', async () => {
      const answer = await tryFetch(lab().host('client'), `http://192.0.2.1:${PORT}/`);
      return (
        typeof answer === 'object' && answer.status === 200 && answer.body.includes('"localEndpoints": 2')
      );
    });
    await eventually(
      'metrics',
      async () => typeof (await tryFetch(host, 'http://127.0.0.1:10249/metrics')) === 'object',
    );
    await program.end('SIGTERM');
  });

  test("a load balancer's address that is every machine's own is told", async () => {
    const program = await node().serve('token', '--iptables-min-sync-period=0s');
    const status = { loadBalancer: { ingress: [{ ip: '127.0.0.1', ipMode: 'VIP' }] } };
    await node().put(
      ...objects([{ name: 'own', ip: '10.96.1.3', pods: 'a' }]).map((object) =>
        object.kind === 'Service' ? { ...object, status } : object,
      ),
    );
    await eventually('the event', async () => (await eventsOf('AddressNotServed')).length > 0);
    const [event] = await eventsOf('AddressNotServed');
    expect(event).toMatchObject({
      regarding: { kind: 'Service', namespace: 'shop', name: 'own' },
      note: 'node node1 does not serve an address of it: status.loadBalancer.ingress[0].ip 127.0.0.1 is a loopback address',
    });
    expect(await node().host.run(['iptables-save', '-t', 'nat'])).not.toContain('-d 127.0.0.1/32');
    await program.end('SIGTERM');
  });

  test('a Service that is too large is told on the Service and in the log', async () => {
    const program = await node().serve('token', '--iptables-min-sync-period=0s');
    const ranges = Array.from({ length: 10_001 }, (_, index) => `32.${index >> 8}.${index & 255}.0/24`);
    const large = objects([{ name: 'large', ip: '10.96.1.9', pods: 'a' }]).map((object) =>
      object.kind === 'Service'
        ? { ...object, spec: { ...(object['spec'] as object), loadBalancerSourceRanges: ranges } }
        : object,
    );
    await node().put(...large);
    await eventually('the event', async () => (await eventsOf('ServiceTooLarge')).length > 0);
    const [event] = await eventsOf('ServiceTooLarge');
    const reason =
      'spec.loadBalancerSourceRanges has 10001 entries, of which the first 10000 are used: ' +
      'a Service may have 10000 source-range entries (ranges × load-balancer addresses × ports)';
    expect(event).toMatchObject({
      type: 'Warning',
      regarding: { apiVersion: 'v1', kind: 'Service', namespace: 'shop', name: 'large' },
      note: `node node1 serves a part of it: ${reason}`,
    });
    await program.says('A Service is too large; not all of it is served');
    await program.says(reason);
    await program.end('SIGTERM');
  });

  test.each([
    ['healthz', '--healthz-bind-address=127.0.0.1:31000', 'FailedToStartProxierHealthcheck'],
    ['metrics', '--metrics-bind-address=127.0.0.1:31000', 'FailedToStartMetricServer'],
  ])('a %s address that somebody has ends the process where that is asked for', async (_, flag, reason) => {
    const squatter = await node().host.serve([{ protocol: 'tcp', port: 31_000 }]);
    onTestFinished(() => squatter.close());
    const program = await node().start('token', flag, '--bind-address-hard-fail');
    expect(await program.ended()).toBe(1);
    expect(program.log).toMatch(/listen EADDRINUSE.*127\.0\.0\.1:31000/);
    expect(program.log).not.toContain('    at ');
    const [event] = await eventsOf(reason);
    expect(event?.note).toContain('127.0.0.1:31000');
  });
});
