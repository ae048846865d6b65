/** Hand-written rules, to prove that the lab carries translated packets the way that a cluster does. */
import { describe, expect, test } from 'vitest';
import { addressOf, type PodRouting } from '../../lab/topology.ts';
import { FAMILIES, type Family, hostPort, parseIp } from '../../src/model/ip.ts';
import { useLab } from './requireLab.ts';

const ROUTINGS: readonly PodRouting[] = ['bridged', 'routed'];
const SERVICES: Readonly<Record<Family, string>> = { IPv4: '10.96.0.1', IPv6: 'fd00:96::1' };
const COMMANDS: Readonly<Record<Family, string>> = { IPv4: 'iptables', IPv6: 'ip6tables' };

describe.each(ROUTINGS)('pods are %s', (podRouting) => {
  const lab = useLab({ podRouting });

  describe.each(FAMILIES)('%s', (family) => {
    const service = SERVICES[family];
    const podB = addressOf('pod-b', family);
    const rules = (...lines: readonly (readonly string[])[]) =>
      Promise.all(
        lines.map((line) =>
          lab()
            .host('node1')
            .run([COMMANDS[family], '-w', ...line]),
        ),
      );

    test('a service is reached from its neighbour, itself, the other node, outside and the node', async () => {
      const target = hostPort(parseIp(podB) ?? podB, 8080);
      for (const hook of ['PREROUTING', 'OUTPUT']) {
        for (const protocol of ['tcp', 'udp']) {
          await rules([
            '-t',
            'nat',
            '-A',
            hook,
            '-d',
            service,
            '-p',
            protocol,
            '--dport',
            '80',
            '-j',
            'DNAT',
            '--to',
            target,
          ]);
        }
      }
      await rules(['-t', 'nat', '-A', 'POSTROUTING', '-s', podB, '-d', podB, '-j', 'MASQUERADE']);

      for (const protocol of ['tcp', 'udp'] as const) {
        const reply = { host: 'pod-b', address: podB, port: 8080, protocol };
        expect(await lab().host('pod-a').request(protocol, service, 80), 'from its neighbour').toEqual({
          outcome: 'answer',
          reply: { ...reply, peer: addressOf('pod-a', family) },
        });
        expect(await lab().host('pod-b').request(protocol, service, 80), 'from itself').toEqual({
          outcome: 'answer',
          reply: { ...reply, peer: addressOf('node1', family, 1) },
        });
        expect(await lab().host('client').request(protocol, service, 80), 'from outside').toEqual({
          outcome: 'answer',
          reply: { ...reply, peer: addressOf('client', family) },
        });
        expect(await lab().host('pod-c').request(protocol, service, 80), 'from the other node').toEqual({
          outcome: 'answer',
          reply: { ...reply, peer: addressOf('pod-c', family) },
        });
        expect(await lab().host('node1').request(protocol, service, 80), 'from the node itself').toEqual({
          outcome: 'answer',
          reply: { ...reply, peer: addressOf('node1', family) },
        });
      }
    });

    test('a rejected service refuses everybody who asks at the same time', async () => {
      await rules(
        ['-I', 'FORWARD', '-d', service, '-j', 'REJECT'],
        ['-I', 'OUTPUT', '-d', service, '-j', 'REJECT'],
      );
      const refused = { outcome: 'refused' };
      for (const host of ['pod-a', 'client', 'node1'] as const) {
        for (const protocol of ['tcp', 'udp'] as const) {
          const asked = Array.from({ length: 20 }, () => lab().host(host).request(protocol, service, 81));
          expect(await Promise.all(asked), `${host} ${protocol}`).toEqual(asked.map(() => refused));
        }
      }
    });
  });
});
