/** Nobody takes the API server's address away by naming it. */
import { describe, expect, test } from 'vitest';
import type { Node } from '../../src/model/objects.ts';
import { decide } from '../../src/plan/decide.ts';
import { ApiServerEndpoints, nodeView, type ViewSettings } from '../../src/plan/view.ts';
import { Cluster } from './cluster.ts';
import { ip, SETTINGS, slice } from './given.ts';

const NODE_IP = ip('192.0.2.10');
const API = ip('203.0.113.1');
const NODE: Node = { name: 'node-a', ips: [NODE_IP], podCIDRs: [], zone: undefined, eligible: true };
const IPVS: ViewSettings = { ...SETTINGS, bindsAddresses: true, apiServers: [{ ip: API, port: 6443 }] };
const CLAIM = `
  shop/web 10.96.0.1 80 ext=203.0.113.1,203.0.113.2 lb=203.0.113.1
  shop/web-1 of web 8080 | 10.244.0.3`;

function cluster(settings: ViewSettings, lines: string, servers: ApiServerEndpoints['all'] = []): Cluster {
  const made = new Cluster(nodeView(settings, NODE, 'IPv4', servers)).tell(lines);
  made.replan();
  return made;
}

function verdict({ planner }: Cluster, destination: string, port: number): string {
  const packet = { source: ip('198.51.100.9'), destination: ip(destination), port, protocol: 'TCP' } as const;
  return decide(planner, { ...packet, inInterface: 'eth0' }, { addresses: [NODE_IP] }).verdict;
}

function served({ planner }: Cluster): readonly string[] {
  return [...planner.servicePorts.values()].flatMap(({ frontends }) =>
    frontends.map(({ address, port }) => `${address ?? '*'}:${port}`),
  );
}

describe('in a mode that binds addresses', () => {
  test("the API server's address is not served at any port; the others are", () => {
    const made = cluster(IPVS, CLAIM);
    expect(verdict(made, '203.0.113.1', 80)).toBe('pass');
    expect(verdict(made, '203.0.113.2', 80)).toBe('forward');
    expect(served(made)).toEqual(['10.96.0.1:80', '203.0.113.2:80']);
    expect([...made.planner.servicePorts.values()][0]?.refusedIPs).toEqual([API]);
  });

  test('at an address of the node itself, which is never bound, only its port is refused', () => {
    const settings = { ...IPVS, apiServers: [{ ip: NODE_IP, port: 6443 }] };
    const made = cluster(
      settings,
      'shop/web 10.96.0.1 a:80 b:6443 lb=192.0.2.10\nshop/web-1 of web a:80 b:80 | 10.244.0.3',
    );
    expect(verdict(made, '192.0.2.10', 80)).toBe('forward');
    expect(verdict(made, '192.0.2.10', 6443)).toBe('pass');
    expect(served(made)).toEqual(['10.96.0.1:80', '192.0.2.10:80', '10.96.0.1:6443']);
  });

  test('the endpoints of default/kubernetes are API servers', () => {
    const servers = new ApiServerEndpoints();
    const given = slice('default/kubernetes of kubernetes https:6443 | 203.0.113.2');
    servers.update('default/kubernetes', given);
    servers.update('shop/kubernetes', { ...given, namespace: 'shop' });
    expect(servers.all).toEqual([{ ip: '203.0.113.2', port: 6443 }]);
    expect(verdict(cluster(IPVS, CLAIM, servers.all), '203.0.113.2', 80)).toBe('pass');
    servers.update('default/kubernetes', { ...given, service: 'other' });
    expect(servers.all).toEqual([]);
  });

  test('the cluster IP of the API server stays served', () => {
    const settings = { ...IPVS, apiServers: [{ ip: ip('10.96.0.1'), port: 443 }] };
    const made = cluster(
      settings,
      'default/kubernetes 10.96.0.1 443\ndefault/kubernetes of kubernetes 6443 | 203.0.113.1',
    );
    expect(verdict(made, '10.96.0.1', 443)).toBe('forward');
  });
});

test('in other modes an address is taken at one port only, so all are served, as with kube-proxy', () => {
  const made = cluster({ ...IPVS, bindsAddresses: false }, CLAIM);
  expect(verdict(made, '203.0.113.1', 80)).toBe('forward');
});
