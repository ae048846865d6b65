/** `junction plan --proxy-mode ipvs`: everything that would be written, as text for the usual programs. */
import { describe, expect, test } from 'vitest';
import { parseSave } from '../../src/modes/iptables/rules/parse.ts';
import { applyRestore } from '../modes/iptables/rules/restore.ts';
import { EMPTY } from '../modes/iptables/rules/fakeKernel.ts';
import { useFiles } from './files.ts';
import { plannerFor, WEB_ENDPOINTS } from './plan.ts';

const file = useFiles();
const SHOP = file(
  'shop.yaml',
  `
apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec:
  clusterIP: 10.96.0.1
  clusterIPs: [10.96.0.1, "fd00:96::1"]
  ipFamilies: [IPv4, IPv6]
  sessionAffinity: ClientIP
  ports: [{ name: http, port: 80 }]
---
apiVersion: v1
kind: Service
metadata: { name: dns, namespace: shop }
spec:
  clusterIP: 10.96.0.2
  externalIPs: [198.51.100.7]
  ports: [{ name: dns, port: 53, protocol: UDP }, { name: sctp, port: 9, protocol: SCTP }]
${WEB_ENDPOINTS}---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: dns-1, namespace: shop, labels: { kubernetes.io/service-name: dns } }
addressType: IPv4
ports: [{ name: dns, port: 5353, protocol: UDP }, { name: sctp, port: 90, protocol: SCTP }]
endpoints: [{ addresses: [10.244.0.3], nodeName: node-a }]
`,
);
const plan = plannerFor('ipvs', SHOP);

interface PlannedFamily {
  readonly mode: string;
  readonly layout?: string;
  readonly ipset: string;
  readonly ipvsadm: string;
  readonly ip: string;
  readonly restore: string;
}

async function planned(family: string, ...flags: readonly string[]): Promise<PlannedFamily> {
  const { code, out } = await plan(`--family=${family}`, '--output=json', ...flags);
  expect(code).toBe(0);
  const { families } = JSON.parse(out) as { readonly families: readonly PlannedFamily[] };
  const [first] = families;
  if (!first) throw new Error('no family was planned');
  return first;
}

describe('junction plan in the ipvs mode', () => {
  test('prints four parts for each family, in the order in which they may be written', async () => {
    const { out } = await plan();
    expect(out.match(/^# IP.*$/gm)).toEqual([
      '# IPv4, sets, for: ipset restore -exist',
      '# IPv4, virtual servers, for: ipvsadm --restore',
      '# IPv4, rules, for: iptables-restore --noflush',
      '# IPv4, addresses, for: ip -force -batch -',
      '# IPv6, sets, for: ipset restore -exist',
      '# IPv6, virtual servers, for: ipvsadm --restore',
      '# IPv6, rules, for: ip6tables-restore --noflush',
      '# IPv6, addresses, for: ip -force -batch -',
    ]);
  });

  test('as JSON, each part is by itself', async () => {
    const { out } = await plan('--family=ipv4');
    const { mode, layout, ipset, ipvsadm, restore, ip } = await planned('ipv4');
    expect({ mode, layout }).toEqual({ mode: 'ipvs', layout: undefined });
    const bodies = out
      .split(/^# IP.*\n/m)
      .slice(1)
      .map((body) => body.replaceAll(/^#.*\n/gm, ''));
    expect(bodies.map((body) => body.trimEnd())).toEqual(
      [ipset, ipvsadm, restore, ip].map((text) => text.trimEnd()),
    );
  });

  test('virtual servers and their endpoints, with affinity', async () => {
    expect((await planned('ipv4')).ipvsadm.split('\n').sort()).toEqual([
      '',
      '-A --sctp-service 10.96.0.2:9 -s rr',
      '-A --sctp-service 198.51.100.7:9 -s rr',
      '-A -t 10.96.0.1:80 -s rr -p 10800',
      '-A -u 10.96.0.2:53 -s rr',
      '-A -u 198.51.100.7:53 -s rr',
      '-a --sctp-service 10.96.0.2:9 -r 10.244.0.3:90 -m -w 1',
      '-a --sctp-service 198.51.100.7:9 -r 10.244.0.3:90 -m -w 1',
      '-a -t 10.96.0.1:80 -r 10.244.0.1:8080 -m -w 1',
      '-a -t 10.96.0.1:80 -r 10.244.1.1:8080 -m -w 1',
      '-a -u 10.96.0.2:53 -r 10.244.0.3:5353 -m -w 1',
      '-a -u 198.51.100.7:53 -r 10.244.0.3:5353 -m -w 1',
    ]);
    expect((await planned('ipv6')).ipvsadm).toBe(
      '-A -t [fd00:96::1]:80 -s rr -p 10800\n-a -t [fd00:96::1]:80 -r [fd00:244::1]:8080 -m -w 1\n',
    );
  });

  test('with another scheduler', async () => {
    const { ipvsadm } = await planned('ipv6', '--ipvs-scheduler=mh');
    expect(ipvsadm).toContain('-A -t [fd00:96::1]:80 -s mh -p 10800 -b mh-port\n');
  });

  test('a virtual server is there before its endpoints', async () => {
    const lines = (await planned('ipv4')).ipvsadm.split('\n');
    const isAfterItsServer = lines
      .map((line, index) => [/^-a (\S+ \S+)/.exec(line)?.[1], index] as const)
      .filter(([server]) => server !== undefined)
      .map(([server, index]) => lines.findIndex((line) => line.startsWith(`-A ${server} `)) < index);
    expect(isAfterItsServer).toEqual(isAfterItsServer.map(() => true));
  });

  test('sets of the family, and those without entries too', async () => {
    const { ipset } = await planned('ipv4');
    expect(ipset).toContain('create KUBE-CLUSTER-IP hash:ip,port family inet hashsize 1024 maxelem 65536\n');
    expect(ipset).toContain('create KUBE-NODE-PORT-TCP bitmap:port range 0-65535\n');
    expect(ipset).not.toContain('KUBE-NO-LOCAL');
    const sets = (verb: string): readonly string[] =>
      [...ipset.matchAll(new RegExp(`^${verb} (\\S+)`, 'gm'))].map(([, name = '']) => name);
    expect(sets('flush')).toEqual(sets('create'));
    expect(ipset.match(/^add .*$/gm)?.sort()).toEqual([
      'add KUBE-CLUSTER-IP 10.96.0.1,tcp:80',
      'add KUBE-CLUSTER-IP 10.96.0.2,sctp:9',
      'add KUBE-CLUSTER-IP 10.96.0.2,udp:53',
      'add KUBE-EXTERNAL-IP 198.51.100.7,sctp:9',
      'add KUBE-EXTERNAL-IP 198.51.100.7,udp:53',
      'add KUBE-IPVS-IPS 10.96.0.1',
      'add KUBE-IPVS-IPS 10.96.0.2',
      'add KUBE-IPVS-IPS 198.51.100.7',
      'add KUBE-LOOP-BACK 10.244.0.1,tcp:8080,10.244.0.1',
      'add KUBE-LOOP-BACK 10.244.0.3,sctp:90,10.244.0.3',
      'add KUBE-LOOP-BACK 10.244.0.3,udp:5353,10.244.0.3',
    ]);
    expect((await planned('ipv6')).ipset).toContain(
      'create KUBE-6-CLUSTER-IP hash:ip,port family inet6 hashsize 1024 maxelem 65536\n',
    );
  });

  test('every address once, on a device that is made first', async () => {
    expect((await planned('ipv4')).ip.split('\n')).toEqual([
      'link add name kube-ipvs0 type dummy',
      ...['10.96.0.2', '198.51.100.7', '10.96.0.1']
        .map((ip) => `address replace ${ip}/32 dev kube-ipvs0`)
        .sort(),
      '',
    ]);
    expect((await planned('ipv6')).ip).toContain('address replace fd00:96::1/128 dev kube-ipvs0\n');
  });

  test('rules that match the sets which have entries', async () => {
    const { restore, ipset } = await planned('ipv4');
    const tables = applyRestore(parseSave(EMPTY), restore);
    expect(tables.get('nat')?.has('KUBE-LOAD-BALANCER')).toBe(true);
    const matched = [...restore.matchAll(/--match-set (\S+)/g)].map(([, name]) => name);
    expect(matched).toContain('KUBE-EXTERNAL-IP');
    for (const name of matched) expect(ipset).toContain(`create ${name} `);
  });

  test('as a table, it says who answers where, in any mode alike', async () => {
    const table = ['--output=table', '--family=ipv4'];
    const withoutHead = ({ out }: { readonly out: string }): string => out.slice(out.indexOf('\n'));
    const inIptables = withoutHead(await plan(...table, '--proxy-mode=iptables'));
    expect(withoutHead(await plan(...table))).toBe(inIptables);
  });
});
