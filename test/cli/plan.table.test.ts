/** `junction plan`: what it reads, and what people see of it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type RawObject, TestApiServer } from '../support/apiServer/index.ts';
import { useFiles } from './files.ts';
import { junction } from './junction.ts';

const JUNCTION = fileURLToPath(new URL('../../bin/junction', import.meta.url));
const file = useFiles();

const OBJECTS: readonly RawObject[] = [
  {
    kind: 'Service',
    metadata: { name: 'web', namespace: 'shop', uid: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: {
      type: 'LoadBalancer',
      clusterIP: '10.96.0.1',
      clusterIPs: ['10.96.0.1'],
      sessionAffinity: 'ClientIP',
      loadBalancerSourceRanges: ['198.51.100.0/24', '203.0.113.0/24'],
      ports: [{ name: 'http', port: 80, nodePort: 30080, protocol: 'TCP' }],
    },
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
  },
  {
    kind: 'Service',
    metadata: { name: 'late', namespace: 'shop', uid: '2', creationTimestamp: '2026-01-02T00:00:00Z' },
    spec: {
      type: 'ClusterIP',
      clusterIP: '10.96.0.2',
      clusterIPs: ['10.96.0.2'],
      externalIPs: ['192.0.2.1'],
      ports: [{ port: 80, protocol: 'TCP' }],
    },
  },
  {
    kind: 'EndpointSlice',
    metadata: { name: 'web-1', namespace: 'shop', uid: '3', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: [
      { addresses: ['10.244.0.1'], nodeName: 'node-a', conditions: { ready: true } },
      { addresses: ['10.244.1.1'], nodeName: 'node-b', conditions: { ready: true } },
    ],
  },
  {
    kind: 'Node',
    metadata: { name: 'node-a', uid: '4' },
    spec: {},
    status: { addresses: [{ type: 'InternalIP', address: '10.64.0.1' }] },
  },
];
const YAML = OBJECTS.map((object) => JSON.stringify(object)).join('\n---\n');
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

test('the table says for whom it is, who answers where, in which endpoints that ends, and who loses an address', async () => {
  const { code, out, err } = await junction('plan', '--manifests', MANIFESTS, ...FLAGS, NODE);
  const [head, ...rest] = cellsOf(out);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(head).toMatch(/^Node node-a, iptables mode, layout current, IPv4, 20\d\d-\d\d-\d\dT[\d:.]+Z$/);
  expect(rest).toEqual(FRONTENDS);
});

test('in a terminal that is too narrow, who answers stands below the address', async () => {
  const before = Object.getOwnPropertyDescriptor(process.stdout, 'columns');
  Object.defineProperty(process.stdout, 'columns', { value: 80, configurable: true });
  try {
    const { code, out } = await junction('plan', '--manifests', MANIFESTS, ...FLAGS, NODE);
    expect(code).toBe(0);
    expect(out.split('\n').slice(1, 12)).toEqual([
      'SERVICE PORT       FRONTEND       ADDRESS, AND WHO ANSWERS',
      'shop/late/TCP      cluster IP     10.96.0.2:80',
      '  reject',
      'shop/web:http/TCP  cluster IP     10.96.0.1:80',
      '  from pod: 2 endpoints; from node: 2 endpoints, masqueraded; from outside: 2',
      '  endpoints, masqueraded; affinity: 10800s',
      'shop/web:http/TCP  load balancer  192.0.2.1:80',
      '  2 endpoints, masqueraded; sources: 198.51.100.0/24,203.0.113.0/24; affinity:',
      '  10800s',
      'shop/web:http/TCP  node port      *:30080',
      '  2 endpoints, masqueraded; affinity: 10800s',
    ]);
  } finally {
    if (before) Object.defineProperty(process.stdout, 'columns', before);
    else Reflect.deleteProperty(process.stdout, 'columns');
  }
});

test('JSON has the addresses that were lost', async () => {
  const { out } = await junction('plan', '--manifests', MANIFESTS, '--family=ipv4', '-o', 'json', NODE);
  expect(JSON.parse(out)).toMatchObject({
    families: [
      {
        lostAddresses: [
          { servicePort: 'shop/late/TCP', address: '192.0.2.1/TCP/80', servedBy: 'shop/web:http/TCP' },
        ],
      },
    ],
  });
});

describe('a node that is not there', () => {
  test('is said, with those that are', async () => {
    const { code, out, err } = await junction(
      'plan',
      '--manifests',
      MANIFESTS,
      ...FLAGS,
      '--hostname-override=nodea',
    );
    expect(code).toBe(0);
    expect(out).toMatch(/^Node nodea \(there is no such Node\), /);
    expect(err).toMatch(/^warning: no Node is named nodea; there are node-a\. --hostname-override/);
  });

  test('without any Node it stands in the header alone', async () => {
    const none = file('none.yaml', YAML.replace('"kind":"Node"', '"kind":"Pod"'));
    const { out, err } = await junction('plan', '--manifests', none, ...FLAGS, NODE);
    expect(out).toMatch(/^Node node-a \(there is no such Node\), /);
    expect(err).toBe('');
  });
});

describe('standard input', () => {
  async function piped(
    input: string,
    ...args: readonly string[]
  ): Promise<readonly [unknown, string, string]> {
    const child = spawn(process.execPath, [JUNCTION, 'plan', ...args]);
    child.stdin.end(input);
    const ended = new Promise((resolve) => child.once('close', resolve));
    return Promise.all([ended, text(child.stdout), text(child.stderr)]);
  }

  test('is read as manifests', async () => {
    const [code, out, err] = await piped(YAML, '--manifests', '-', ...FLAGS, NODE);
    expect([code, err]).toEqual([0, '']);
    expect(cellsOf(out).slice(1)).toEqual(FRONTENDS);
  });

  test('problems name it', async () => {
    const [code, out, err] = await piped('kind: Service\nmetadata: [', '--manifests', '-');
    expect([code, out]).toEqual([1, '']);
    expect(err).toMatch(/^stdin:2: error: /);
  });

  test('stands alone', async () => {
    const [code, out, err] = await piped(YAML, '--manifests', '-', '--manifests', MANIFESTS);
    expect([code, out]).toEqual([1, '']);
    expect(err).toContain('standard input, and stands alone');
  });
});

describe('an API server', () => {
  let server: TestApiServer;
  beforeAll(async () => {
    server = await TestApiServer.start();
    server.put(...OBJECTS);
  });
  afterAll(() => server.close());

  function kubeconfig(url: string): string {
    return file(
      'kubeconfig',
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [{ name: 'c', cluster: { server: url } }],
        users: [{ name: 'u', user: {} }],
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
        'current-context': 'x',
      }),
    );
  }

  /** Said where it takes longer than a second, as on a busy machine. */
  function withoutProgress(err: string): string {
    return err.replace(/^Reading Services, EndpointSlices and the Node from http:\/\/[\d.:]+ …\n/, '');
  }

  test.each([true, false])('is asked once for everything (streams lists: %s)', async (streams) => {
    server.streamsLists = streams;
    const { code, out, err } = await junction('plan', '--kubeconfig', kubeconfig(server.url), ...FLAGS, NODE);
    expect({ code, err: withoutProgress(err) }).toEqual({ code: 0, err: '' });
    expect(cellsOf(out).slice(1)).toEqual(FRONTENDS);
    await expect.poll(() => server.watches.size).toBe(0);
  });

  test('that has no such Node: that is said in every form', async () => {
    for (const output of ['text', 'table', 'json']) {
      const { code, err } = await junction(
        'plan',
        '--kubeconfig',
        kubeconfig(server.url),
        '--hostname-override=nodea',
        '-o',
        output,
      );
      expect(code).toBe(0);
      expect(withoutProgress(err)).toBe(
        'warning: no Node is named nodea; kubectl get nodes names those that are there. --hostname-override says which one to plan for\n',
      );
    }
  });

  test.each([
    [
      400,
      'Client sent an HTTP request to an HTTPS server.',
      /what to do: Check that server in the kubeconfig/,
    ],
    [404, 'page not found', /what to do: Check that server in the kubeconfig/],
    [500, 'etcdserver: no leader', /what to do: Look into the API server's log/],
  ])('that answers %i: what to do about it', async (status, body, remedy) => {
    const other = createServer((_, response) => response.writeHead(status).end(body)).listen(0, '127.0.0.1');
    await once(other, 'listening');
    try {
      const address = other.address();
      const port = typeof address === 'object' ? address?.port : undefined;
      const config = kubeconfig(`http://127.0.0.1:${port}`);
      const { code, out, err } = await junction('plan', '--kubeconfig', config, ...FLAGS, NODE);
      expect({ code, out }).toEqual({ code: 1, out: '' });
      expect(err).toContain(`answered ${status}: ${body}`);
      expect(err).toMatch(remedy);
    } finally {
      other.close();
    }
  });

  test.each([
    [
      'a path that the shell left as it is',
      '~/.kube/config',
      /no such file.*\n {2}what to do: A shell replaces ~/,
    ],
    ['an empty file', '/dev/null', /current-context is not set.*\n {2}what to do: It has no contexts at all/],
  ])('in %s', async (_, path, expected) => {
    const { code, out, err } = await junction('plan', '--kubeconfig', path, ...FLAGS, NODE);
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toMatch(expected);
  });

  test('that is not there is an error, at once', async () => {
    const closed = kubeconfig('http://127.0.0.1:1');
    const { code, out, err } = await junction('plan', '--kubeconfig', closed, ...FLAGS, NODE);
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toMatch(/ECONNREFUSED[^]*what to do: Check the address/);
  });
});

test('a proxy cannot follow standard input', async () => {
  const { code, err } = await junction('run', '--manifests', '-', NODE);
  expect(code).toBe(1);
  expect(err).toContain('standard input, which cannot be followed');
});
