/** The pod of the ipvs mode in a kernel that has IPVS, where nobody has loaded it; one of our own, booted once. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { jsonFromGuest, requireGuest, whyNoGuest } from '../support/uml/guest.ts';
import { at, listAt, merge, objectOf, podOf, REQUIRED, renderObjects } from './chart.ts';
import type { IpvsPod, IpvsPodSteps } from './podIpvsSteps.ts';
import { HOST, podScript } from './podScript.ts';

const PROGRAMS = ['unshare', 'setpriv', 'ip', 'iptables-legacy', 'ip6tables-legacy'];
/** What a node has long before any pod runs: IPv6, and the base of the legacy variant, which kubelet loads. */
const MODULES = ['ipv6', 'ip_tables', 'ip6_tables'];
const VALUES = merge(REQUIRED, { config: { mode: 'ipvs', ipvs: { strictARP: true } } });
const WANTED = {
  'net/ipv4/vs/conntrack': '1',
  'net/ipv4/vs/expire_nodest_conn': '1',
  'net/ipv4/vs/expire_quiescent_template': '1',
  'net/ipv4/ip_forward': '1',
  'net/ipv4/conf/all/arp_ignore': '1',
  'net/ipv4/conf/all/arp_announce': '2',
};
const SERVICE = { ip: '10.96.0.50', port: 80 };
const ENDPOINT = { ip: '10.244.1.5', port: 8080 };
const MANIFEST = `
apiVersion: v1
kind: Service
metadata: { name: web, namespace: default }
spec: { clusterIP: ${SERVICE.ip}, ports: [{ name: http, port: ${SERVICE.port}, protocol: TCP }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, namespace: default, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ name: http, port: ${ENDPOINT.port}, protocol: TCP }]
endpoints: [{ addresses: [${ENDPOINT.ip}], nodeName: node1 }]
`;

describe('the capabilities of the pod and its mounts are enough for the ipvs mode', () => {
  let folder: string | undefined;
  let steps: IpvsPodSteps;
  beforeEach((context) => requireGuest(context, PROGRAMS));
  beforeAll(async () => {
    if (whyNoGuest(PROGRAMS) !== undefined) return;
    folder = await mkdtemp(join(tmpdir(), 'junction-pod-'));
    const source = `import { ipvsPodSteps } from './test/deploy/podIpvsSteps.ts';
      await ipvsPodSteps(${JSON.stringify(await writePod(folder))});`;
    steps = (await jsonFromGuest('podIpvs', source, {
      modules: MODULES,
      timeoutMs: 600_000,
    })) as IpvsPodSteps;
  }, 660_000);
  afterAll(async () => {
    if (folder !== undefined) await rm(folder, { recursive: true });
  });

  test('to serve, with no capability more, on a node where nobody has loaded IPVS', () => {
    expect(steps.before['net/ipv4/vs/conntrack']).toBe('not there');
    expect(steps.first.settings).toEqual(WANTED);
    expect(steps.first.capabilities).toBe(podScript(VALUES).capabilityMask);
    expect(steps.first.device).toContain(`${SERVICE.ip}/32`);
    expect(steps.first.answer).toBe('hello from the endpoint');
    // On a busy machine a stop takes long, and says so.
    expect(steps.first.log.split('Received SIGTERM')[0]).not.toMatch(/^E/m);
  });

  test('to start again without its init container, and put a setting right that somebody undid', () => {
    expect(steps.restarted.settings).toEqual(WANTED);
    expect(steps.restarted.answer).toBe('hello from the endpoint');
  });
});

/** The files that the pod mounts, on the host, whose files the guest sees. */
async function writePod(folder: string): Promise<IpvsPod> {
  const objects = renderObjects(VALUES);
  const config = join(folder, 'config.conf');
  const manifest = join(folder, 'services.yaml');
  await writeFile(config, String(at(objectOf(objects, 'ConfigMap'), 'data', 'config.conf')));
  await writeFile(manifest, MANIFEST);
  const args = listAt(podOf(objects), 'containers', 0, 'args').map((arg) =>
    String(arg)
      .replace('/var/lib/kube-proxy/config.conf', config)
      .replace('$(NODE_NAME)', 'node1')
      .replace('=/host', `=${HOST}`),
  );
  // The guest's kernel has no nftables for IPv4, and there is no API server.
  const program = ['bin/junction', ...args, `--manifests=${manifest}`, '--iptables-variant=legacy'];
  const { script, restartScript } = podScript(VALUES);
  return {
    script,
    restartScript,
    program,
    settings: Object.keys(WANTED),
    service: SERVICE,
    endpoint: ENDPOINT,
  };
}
