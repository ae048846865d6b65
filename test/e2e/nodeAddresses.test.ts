/** Addresses that come to a node and leave it: node ports and health-check node ports follow, whatever the sync period. */
import { describe, expect, test } from 'vitest';
import type { Host } from '../../lab/host.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon } from './daemon.ts';
import { eventually } from './support/eventually.ts';
import { tryFetch } from './support/fetch.ts';
import { useInLab } from './support/use.ts';
import { manifests } from './cluster.ts';

const RANGES = ['--nodeport-addresses=172.30.0.0/24,fd00:30::/64', '--iptables-sync-period=1h'];
const MODES: readonly (readonly string[])[] = [
  ['--proxy-mode=iptables', '--iptables-variant=nft'],
  ['--proxy-mode=iptables', '--iptables-variant=legacy'],
  ['--proxy-mode=nftables'],
];
const NODE_PORT = 30_080;
const HEALTH_PORT = 31_999;
const WORLD = manifests([
  {
    name: 'web',
    ip: '10.96.1.1',
    ip6: 'fd00:96::1',
    nodePort: NODE_PORT,
    extra: `  externalTrafficPolicy: Local
  healthCheckNodePort: ${HEALTH_PORT}
status: {loadBalancer: {ingress: [{ip: 203.0.113.5}]}}`,
    pods: 'ac',
  },
]).replace('type: NodePort', 'type: LoadBalancer');

describe.each(MODES)('%s %s', (...mode) => {
  const lab = useLab();
  const node = (): Host => lab().host('node1');
  useInLab(async () => {
    const made = await Daemon.create(node(), ...mode, ...RANGES);
    await made.write(WORLD);
    await made.start();
    return made;
  });
  const change = (what: 'add' | 'del', address: string, length: number): Promise<string> => {
    const nodad = what === 'add' && address.includes(':') ? ['nodad'] : [];
    return node().run(['ip', 'address', what, `${address}/${length}`, 'dev', 'lo', ...nodad]);
  };
  const answers = async (address: string): Promise<boolean> =>
    (await node().request('tcp', address, NODE_PORT)).outcome === 'answer';
  const listeners = (): Promise<string> => node().run(['ss', '-ltnH']);
  const isHealthPortOpen = async (host: string): Promise<boolean> =>
    typeof (await tryFetch(node(), `http://${host}:${HEALTH_PORT}/`)) === 'object';

  test('an added address gets node ports and health-check node ports; a removed one loses them', async () => {
    expect(await listeners()).not.toContain('172.30.0.5');
    await change('add', '172.30.0.5', 32);
    await eventually('the node port', () => answers('172.30.0.5'));
    await eventually('the health-check node port', () => isHealthPortOpen('172.30.0.5'));

    await change('add', '172.30.0.6', 32);
    await change('del', '172.30.0.5', 32);
    await eventually('the node port at the new address', () => answers('172.30.0.6'));
    await eventually('the health-check node port at the new address', () => isHealthPortOpen('172.30.0.6'));
    await eventually(
      'nothing listens on the old address',
      async () => !(await listeners()).includes(`172.30.0.5:${HEALTH_PORT}`),
    );
  });

  test('in IPv6 too', async () => {
    expect(await listeners()).not.toContain('fd00:30::5');
    await change('add', 'fd00:30::5', 128);
    await eventually('the node port', () => answers('fd00:30::5'));
    await eventually('the health-check node port', () => isHealthPortOpen('[fd00:30::5]'));
  });
});
