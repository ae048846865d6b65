/** What may change under a running daemon in the nftables mode beside services: its settings, its node, its addresses. */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Host } from '../../lab/host.ts';
import { useLab } from '../lab/requireLab.ts';
import { ApiNode } from './support/api/apiNode.ts';
import { Configured, type Fields } from './support/configured.ts';
import { eventually } from './support/eventually.ts';
import { ourTables } from './support/nftTable.ts';
import { answerers, expectAnswers } from './support/traffic.ts';
import { manifests, nodeObject, objects, type ServiceWords } from './cluster.ts';

const API = '10.96.1.1';
const NODE_PORT = 30_080;
const STICKY = '  sessionAffinity: ClientIP';
const SERVICES: readonly ServiceWords[] = [
  { name: 'api', ip: API, nodePort: NODE_PORT, pods: 'c' },
  { name: 'sticky', ip: '10.96.1.2', nodePort: 30_081, pods: 'abcd', extra: STICKY },
];
const IN_MODE: Fields = { mode: 'nftables', nftables: { syncPeriod: '60s', minSyncPeriod: '10ms' } };

const lab = useLab();
const node = (): Host => lab().host('node1');

async function started(fields: Fields = {}): Promise<Configured> {
  const made = await Configured.create(node(), SERVICES);
  onTestFinished(() => made.close());
  await made.write({ ...IN_MODE, ...fields });
  await made.start();
  return made;
}

/** Who the pod thinks is asking. */
async function peerSeen(): Promise<string> {
  const outcome = await lab().host('pod-b').request('tcp', API, 80);
  return outcome.outcome === 'answer' ? outcome.reply.peer : outcome.outcome;
}

async function untilPeer(peer: string): Promise<void> {
  await eventually(`${peer} is seen`, async () => (await peerSeen()) === peer);
}

describe('a configuration file that changes', () => {
  test('masqueradeAll, clusterCIDR and the bit of the mark', async () => {
    const made = await started();
    const session = await lab().host('pod-b').openSession(API, 80);
    await untilPeer('10.244.1.12');
    await made.write({
      ...IN_MODE,
      nftables: { masqueradeAll: true, syncPeriod: '60s', minSyncPeriod: '10ms' },
    });
    await untilPeer('192.168.100.2');
    await made.write(IN_MODE);
    await untilPeer('10.244.1.12');
    await made.write({ ...IN_MODE, clusterCIDR: '10.244.2.0/24,fd00:244::/32' });
    await untilPeer('192.168.100.2');
    expect((await session.send()).outcome).toBe('answer');
    await session.close();
    expect(made.program.isRunning).toBe(true);
  });

  test('nodePortAddresses, and addresses of the node that come and go', async () => {
    const made = await started({ nodePortAddresses: ['192.0.2.0/24'] });
    const client = lab().host('client');
    const stays = async (address: string): Promise<boolean> =>
      /^pod-\w$/.test(await answerers(client, address, 30_081));
    await client.request('tcp', '192.0.2.1', 30_081);
    expect(await answerers(client, '192.0.2.1', NODE_PORT)).toBe('pod-c');
    expect(await answerers(client, '192.168.100.2', NODE_PORT)).toBe('refused');

    await node().run(['ip', 'address', 'add', '192.0.2.77/24', 'dev', 'eth1']);
    await expectAnswers(client, '192.0.2.77', 'pod-c', NODE_PORT);
    await client.request('tcp', '192.0.2.77', 30_081);
    expect(await stays('192.0.2.77')).toBe(true);
    await node().run(['ip', 'address', 'delete', '192.0.2.77/24', 'dev', 'eth1']);
    await eventually('its end', async () => !(await ourTables(node())).includes('192.0.2.77'));
    expect(await stays('192.0.2.1')).toBe(true);

    await made.write({ ...IN_MODE, nodePortAddresses: ['192.168.100.0/24'] });
    await expectAnswers(client, '192.168.100.2', 'pod-c', NODE_PORT);
    expect(await answerers(client, '192.0.2.1', NODE_PORT)).toBe('refused');
    await made.write({ ...IN_MODE, nodePortAddresses: ['0.0.0.0/0', '::/0'] });
    await expectAnswers(client, '192.0.2.1', 'pod-c', NODE_PORT);
    expect(made.program.isRunning).toBe(true);
  });
});

test('the Node object decides by its zone and its ranges, and they may change', async () => {
  const zones = { a: 'zone-a', b: 'zone-a', c: 'zone-b', d: 'zone-b' };
  const zoned = objects([
    { name: 'zoned', ip: '10.96.1.5', nodePort: NODE_PORT, pods: 'abcd', zones },
    { name: 'api', ip: API, pods: 'c' },
  ]);
  const made = await ApiNode.create(node(), [nodeObject(), ...zoned]);
  onTestFinished(() => made.close());
  const flags = ['--proxy-mode=nftables', '--detect-local-mode=NodeCIDR', '--iptables-min-sync-period=0s'];
  const program = await made.start('certificate', ...flags);
  await program.serves();
  const client = lab().host('client');
  expect(await answerers(client, '10.96.1.5')).toBe('pod-a pod-b');
  // Where nothing is said, node ports answer on the addresses that the Node object has.
  expect(await answerers(client, '192.168.100.2', NODE_PORT)).toBe('pod-a pod-b');
  expect(await answerers(client, '192.0.2.1', NODE_PORT)).toBe('refused');
  await made.put(nodeObject('zone-b'));
  await expectAnswers(client, '10.96.1.5', 'pod-c pod-d');

  await untilPeer('10.244.1.12');
  await made.put(nodeObject('zone-b', { podCIDRs: ['10.244.7.0/24', 'fd00:244:7::/64'] }));
  await untilPeer('192.168.100.2');
  await made.put(nodeObject('zone-b'));
  await untilPeer('10.244.1.12');
  await program.end('SIGTERM');
});

describe('nft list ruleset', () => {
  const KINDS: readonly ServiceWords[] = [
    { name: 'plain', ip: '10.96.2.1', ip6: 'fd00:96::21', pods: 'abcd' },
    { name: 'single', ip: '10.96.2.2', pods: 'a' },
    { name: 'empty', ip: '10.96.2.3', nodePort: 30_203, pods: '' },
    { name: 'sticky', ip: '10.96.2.4', ip6: 'fd00:96::24', nodePort: 30_204, extra: STICKY, pods: 'ab' },
    {
      name: 'local',
      ip: '10.96.2.5',
      ip6: 'fd00:96::25',
      nodePort: 30_205,
      extra: '  externalTrafficPolicy: Local\n  internalTrafficPolicy: Local\n  externalIPs: [198.51.100.5]',
      pods: 'cd',
    },
    {
      name: 'balanced',
      ip: '10.96.2.6',
      nodePort: 30_206,
      extra: `  externalTrafficPolicy: Local
  loadBalancerSourceRanges: [192.0.2.0/24, 10.0.0.0/8]
status: {loadBalancer: {ingress: [{ip: 203.0.113.6}]}}`,
      pods: 'abc',
    },
  ];

  /** Twenty endpoints, on any protocol. */
  function large(name: string, ip: string, protocol: string): string {
    const addresses = Array.from({ length: 20 }, (_, index) => `- {addresses: [10.244.9.${index + 1}]}`);
    const text = manifests([{ name, ip, nodePort: 30_300, pods: '', extra: STICKY }]);
    return text
      .replace('endpoints: []', `endpoints:\n${addresses.join('\n')}`)
      .replaceAll('protocol: TCP', `protocol: ${protocol}`);
  }

  test('prints services of every kind, each by its name', async () => {
    const made = await Configured.create(node(), []);
    onTestFinished(() => made.close());
    await made.serveText(
      [
        manifests(KINDS),
        large('large-tcp', '10.96.2.7', 'TCP'),
        large('large-udp', '10.96.2.8', 'UDP'),
        large('large-sctp', '10.96.2.9', 'SCTP'),
      ].join('---\n'),
    );
    await made.write({ ...IN_MODE, nodePortAddresses: ['192.168.100.0/24', 'fd00:100::/64'] });
    await made.start();
    for (const address of ['10.96.2.4', 'fd00:96::24', '10.96.2.6'])
      await lab().host('pod-b').request('tcp', address, 80);
    const { exitCode, stdout, stderr } = await node().exec(['nft', 'list', 'ruleset']);
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(stdout).not.toMatch(/invalid|unknown|\[/);
    for (const name of [...KINDS.map((kind) => kind.name), 'large-tcp', 'large-udp', 'large-sctp'])
      expect(stdout).toContain(`comment "shop/${name}:http"`);
    expect(stdout).toMatch(/10\.244\.1\.12 \. 10\.96\.2\.4 \. 80 .*expires .* : 10\.244\.1\.1[12] \. 8080/);
  });
});
