/** `junction plan`: what it reads, and what people and programs see of it. The text of each mode: golden/plan.txt. */
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { type RawObject, StatusError, TestApiServer } from '../support/apiServer/index.ts';
import { JUNCTION } from '../support/programs.ts';
import { useFiles } from './files.ts';
import { junction } from './junction.ts';
import { plannerFor, WEB_ENDPOINTS } from './plan.ts';

const file = useFiles();
const YAML = `
apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop, creationTimestamp: "2026-01-01T00:00:00Z" }
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.1
  clusterIPs: [10.96.0.1, "fd00:96::1"]
  ipFamilies: [IPv4, IPv6]
  sessionAffinity: ClientIP
  loadBalancerSourceRanges: [198.51.100.0/24, 203.0.113.0/24]
  ports: [{ name: http, port: 80, nodePort: 30080, protocol: TCP }]
status: { loadBalancer: { ingress: [{ ip: 192.0.2.1 }] } }
---
apiVersion: v1
kind: Service
metadata: { name: late, namespace: shop, creationTimestamp: "2026-01-02T00:00:00Z" }
spec: { clusterIP: 10.96.0.2, externalIPs: [192.0.2.1], ports: [{ port: 80, protocol: TCP }] }
---
apiVersion: v1
kind: Node
metadata: { name: node-a }
status: { addresses: [{ type: InternalIP, address: 10.64.0.1 }] }
${WEB_ENDPOINTS}`;
const MANIFESTS = file('shop.yaml', YAML);
const FLAGS = ['--family=ipv4', '--cluster-cidr=10.244.0.0/16', '-o', 'table'];
const NODE = '--hostname-override=node-a';

const FRONTENDS = [
  'SERVICE PORT|FRONTEND|ADDRESS|FROM POD|FROM NODE|FROM OUTSIDE|SOURCES|AFFINITY',
  'shop/late/TCP|cluster IP|10.96.0.2:80|reject|reject|reject|all|-',
  'shop/web:http/TCP|cluster IP|10.96.0.1:80|2 endpoints|2 endpoints, masqueraded|2 endpoints, masqueraded|all|10800s',
  'shop/web:http/TCP|load balancer|192.0.2.1:80|2 endpoints, masqueraded|2 endpoints, masqueraded|2 endpoints, masqueraded|198.51.100.0/24,203.0.113.0/24|10800s',
  'shop/web:http/TCP|node port|*:30080|2 endpoints, masqueraded|2 endpoints, masqueraded|2 endpoints, masqueraded|all|10800s',
  '',
  'SERVICE PORT|ENDPOINT|FOR',
  'shop/web:http/TCP|10.244.0.1:8080|cluster',
  'shop/web:http/TCP|10.244.1.1:8080|cluster',
  '',
  'SERVICE PORT|LOSES|SERVED BY',
  'shop/late/TCP|192.0.2.1/TCP/80|shop/web:http/TCP',
  '',
];

function cellsOf(out: string): readonly string[] {
  return out.split('\n').map((line) => line.split(/ {2,}/).join('|'));
}

test.each(['iptables', 'ipvs', 'nftables'])('the table is the same in each mode: %s', async (mode) => {
  const modeFlags = [`--proxy-mode=${mode}`, '--nodeport-addresses='];
  const { code, out, err } = await junction('plan', '--manifests', MANIFESTS, ...FLAGS, NODE, ...modeFlags);
  const [head = '', ...rest] = cellsOf(out);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(head).toMatch(new RegExp(`^Node node-a, ${mode} mode, .*IPv4, 20\\d\\d-\\d\\d-\\d\\dT[\\d:.]+Z$`));
  expect(rest).toEqual(FRONTENDS);
});

test('in a terminal that is too narrow, who answers stands below the address', async () => {
  const before = Object.getOwnPropertyDescriptor(process.stdout, 'columns');
  Object.defineProperty(process.stdout, 'columns', { value: 80, configurable: true });
  onTestFinished(() => {
    if (before) Object.defineProperty(process.stdout, 'columns', before);
    else Reflect.deleteProperty(process.stdout, 'columns');
  });
  const { out } = await junction('plan', '--manifests', MANIFESTS, ...FLAGS, NODE);
  expect(out.split('\n').slice(1, 9)).toEqual([
    'SERVICE PORT       FRONTEND       ADDRESS, AND WHO ANSWERS',
    'shop/late/TCP      cluster IP     10.96.0.2:80',
    '  reject',
    'shop/web:http/TCP  cluster IP     10.96.0.1:80',
    '  from pod: 2 endpoints; from node: 2 endpoints, masqueraded; from outside: 2',
    '  endpoints, masqueraded; affinity: 10800s',
    'shop/web:http/TCP  load balancer  192.0.2.1:80',
    '  2 endpoints, masqueraded; sources: 198.51.100.0/24,203.0.113.0/24; affinity:',
  ]);
});

type PlannedFamily = Readonly<Record<string, unknown>>;

test.each([
  ['iptables', ['restore']],
  ['ipvs', ['ipset', 'ipvsadm', 'restore', 'ip']],
  ['nftables', ['nft']],
] as const)('JSON has, beside the plan, each part of the text: %s', async (mode, fields) => {
  const plan = plannerFor(mode, MANIFESTS);
  const json = await plan('--output=json');
  const { families } = JSON.parse(json.out) as { readonly families: readonly PlannedFamily[] };
  expect(families).toMatchObject([
    {
      family: 'IPv4',
      mode,
      servicePorts: { length: 2 },
      lostAddresses: [
        { servicePort: 'shop/late/TCP', address: '192.0.2.1/TCP/80', servedBy: 'shop/web:http/TCP' },
      ],
    },
    { family: 'IPv6', mode, servicePorts: { length: 1 }, lostAddresses: [] },
  ]);
  const withoutComments = (part: string): string => part.replaceAll(/^#.*\n/gm, '').trimEnd();
  const parts = families.flatMap((family) => fields.map((field) => withoutComments(String(family[field]))));
  const { out } = await plan();
  expect(parts).toEqual(
    out
      .split(/^# IP.*\n/m)
      .slice(1)
      .map(withoutComments),
  );
});

test('the text of ipvs mode: sets, virtual servers before their endpoints, rules, addresses on a device that is made first', async () => {
  const flags = ['--family=ipv6', '--ipvs-scheduler=mh'];
  const { out } = await plannerFor('ipvs', MANIFESTS)(...flags);
  // Node ports answer on the addresses of the machine that plans.
  const lines = out
    .split('\n')
    .filter((line) => /^(?:# IP|create .*CLUSTER|add (?!.*IPVS-IPS)|-[aA] -t|address|link)/.test(line));
  expect(lines.filter((line) => !line.includes(']:30080'))).toEqual([
    '# IPv6, sets, for: ipset restore -exist',
    'create KUBE-6-CLUSTER-IP hash:ip,port family inet6 hashsize 1024 maxelem 65536',
    'add KUBE-6-CLUSTER-IP fd00:96::1,tcp:80',
    'add KUBE-6-NODE-PORT-TCP 30080',
    '# IPv6, virtual servers, for: ipvsadm --restore',
    '-A -t [fd00:96::1]:80 -s mh -p 10800 -b mh-port',
    '-a -t [fd00:96::1]:80 -r [fd00:244::1]:8080 -m -w 1',
    '# IPv6, rules, for: ip6tables-restore --noflush',
    '# IPv6, addresses, for: ip -force -batch -',
    'link add name kube-ipvs0 type dummy',
    'address replace fd00:96::1/128 dev kube-ipvs0',
  ]);
});

test('standard input is read as manifests, and stands alone', async () => {
  const child = spawn(process.execPath, [JUNCTION, 'plan', '--manifests', '-', ...FLAGS, NODE]);
  child.stdin.end(YAML);
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect([cellsOf(out).slice(1), err]).toEqual([FRONTENDS, '']);
  const both = await junction('plan', '--manifests', '-', '--manifests', MANIFESTS);
  expect(both).toMatchObject({ code: 1, err: expect.stringContaining('standard input, and stands alone') });
  const followed = await junction('run', '--manifests', '-', NODE);
  expect(followed).toMatchObject({ code: 1, err: expect.stringContaining('cannot be followed') });
});

describe('an API server', () => {
  let server: TestApiServer;
  let asked: readonly string[];
  beforeAll(async () => {
    server = await TestApiServer.start();
    server.put(...parseAllDocuments(YAML).map((document) => document.toJS() as RawObject));
    asked = ['plan', '--kubeconfig', kubeconfig(server.url), ...FLAGS];
  });
  afterAll(() => server.close());

  function kubeconfig(url: string): string {
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'c', cluster: { server: url } }],
      users: [{ name: 'u', user: {} }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    };
    return file('kubeconfig', JSON.stringify(config));
  }

  /** Said where it takes longer than a second, as on a busy machine. */
  function withoutProgress(err: string): string {
    return err.replace(/^Reading Services, EndpointSlices and the Node from http:\/\/[\d.:]+ …\n/, '');
  }

  test('is asked once for everything', async () => {
    const { code, out, err } = await junction(...asked, NODE);
    expect({ code, err: withoutProgress(err) }).toEqual({ code: 0, err: '' });
    expect(cellsOf(out).slice(1)).toEqual(FRONTENDS);
    await expect.poll(() => server.watches.size).toBe(0);
  });

  test('that has no such Node', async () => {
    const { code, out, err } = await junction(...asked, '--hostname-override=nodea');
    expect({ code, head: out.split(',')[0] }).toEqual({
      code: 0,
      head: 'Node nodea (there is no such Node)',
    });
    expect(withoutProgress(err)).toBe(
      'warning: no Node is named nodea; kubectl get nodes names those that are there. --hostname-override says which one to plan for\n',
    );
  });

  test.each([
    [404, 'page not found', /what to do: Check that server in the kubeconfig/],
    [500, 'etcdserver: no leader', /what to do: Look into the API server's log/],
  ])('that answers %i: what to do about it', async (status, message, remedy) => {
    const fault = { kind: 'status', error: new StatusError(status, { reason: 'x', message }) } as const;
    server.faults.add({ on: 'any', times: 100, fault });
    onTestFinished(() => server.faults.clear());
    const { code, out, err } = await junction(...asked, NODE);
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toContain(message);
    expect(err).toMatch(remedy);
  });

  test('that is not there is an error, at once', async () => {
    const { code, out, err } = await junction('plan', '--kubeconfig', kubeconfig('http://127.0.0.1:1'), NODE);
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toMatch(/ECONNREFUSED[^]*what to do: Check the address/);
  });
});
