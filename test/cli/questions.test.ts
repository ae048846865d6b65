/** The questions on manifests: what they print, for people and for programs, and how they end. */
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { useFiles } from './files.ts';
import { junction, type Run } from './junction.ts';

const EXAMPLES = new URL('../../examples', import.meta.url).pathname;
const FLAGS = [
  `--manifests=${EXAMPLES}`,
  '--hostname-override=node1',
  '--cluster-cidr=10.244.0.0/16,fd00:244::/32',
];
const file = useFiles();

function ask(...words: readonly string[]): Promise<Run> {
  return junction(...words, ...FLAGS);
}

describe('services', () => {
  test('a line for each', async () => {
    const { code, out, err } = await ask('services');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(
      out,
    ).toBe(`SERVICE         TYPE          CLUSTER IP              OTHER IPS      PORTS          READY         POLICY          STATE
shop/api        ClusterIP     10.96.0.10                             80/TCP         3/3 (1 here)                  ok
shop/cart       ClusterIP     10.96.0.40                             80/TCP         3/3 (1 here)                  ok
shop/catalog    NodePort      10.96.0.60,fd00:96::60                 80:30060/TCP   2/2 (1 here)                  ok
shop/dns        ClusterIP     10.96.0.53                             53/UDP,53/TCP  2/2 (1 here)                  ok
shop/idle       ClusterIP     10.96.0.70                             80/TCP         0/1                           no endpoints: shop/idle:http has no usable endpoint
shop/shopfront  NodePort      10.96.0.30              198.51.100.20  80:30080/TCP   2/2 (1 here)                  ok
shop/web        LoadBalancer  10.96.0.20              203.0.113.10   80:30020/TCP   2/2 (1 here)  external Local  ok
`);
  });

  const names = async (...words: readonly string[]): Promise<readonly string[]> => {
    const { out } = await ask('services', '--output=json', ...words);
    return (JSON.parse(out) as readonly { readonly service: string }[]).map(({ service }) => service);
  };

  test.each([
    [['--problems'], ['shop/idle']],
    [['ca'], ['shop/cart', 'shop/catalog']],
    [['ca*'], ['shop/cart', 'shop/catalog']],
    [['*a*i'], ['shop/api']],
    [['shop/w*'], ['shop/web']],
    [['-n', 'shop', 'web'], ['shop/web']],
    [['-n', 'sho'], []],
    [['.*'], []],
  ])('%j: %j', async (words, expected) => expect(await names(...words)).toEqual(expected));

  test('wide has every column', async () => {
    const { out } = await ask('services', '-o', 'wide', 'cart');
    expect(out.split('\n')[0]?.split(/ {2,}/)).toEqual([
      'SERVICE',
      'TYPE',
      'CLUSTER IP',
      'OTHER IPS',
      'PORTS',
      'READY',
      'POLICY',
      'AFFINITY',
      'STATE',
    ]);
    expect(out).toMatch(/^shop\/cart .* 10800s +ok$/m);
  });

  test('YAML is the same as JSON', async () => {
    const json = await ask('services', '-o', 'json');
    const yaml = await ask('services', '-o', 'yaml');
    expect(parse(yaml.out)).toEqual(JSON.parse(json.out));
  });

  test('none', async () => {
    expect((await ask('services', 'nowhere')).out).toBe('None of 7 services.\n');
    const empty = file('node.yaml', 'apiVersion: v1\nkind: Node\nmetadata: { name: node1 }\n');
    expect(await junction('services', '--manifests', empty, '--hostname-override=node1')).toEqual({
      code: 0,
      out: 'No services.\n',
      err: '',
    });
  });
});

describe('endpoints', () => {
  test('which are used', async () => {
    const { code, out } = await ask('endpoints', 'shop/web');
    expect(code).toBe(0);
    expect(out).toBe(`SERVICE PORT       ENDPOINT          POD    NODE              STATE  USED FOR
shop/web:http/TCP  10.244.1.11:8081  pod-a  node1 (this one)  ready  cluster, local
shop/web:http/TCP  10.244.2.11:8081  pod-c  node2             ready  cluster
`);
  });

  test('and why others are not', async () => {
    const { out } = await ask('endpoints', '-n', 'shop', 'svc/idle');
    expect(out).toMatch(/^shop\/idle:http\/TCP .* not ready {2}not used: /m);
  });

  test.each([
    [['endpoints'], 2, /of which Service\? junction endpoints NAMESPACE\/NAME/],
    [['endpoints', 'web'], 1, /"web"/],
    [['endpoints', 'shop/wep'], 1, /there is no Service "shop\/wep" \(did you mean shop\/web\?\)/],
    [['endpoints', '-n', 'bank', 'shop/web'], 2, /names another namespace than --namespace bank/],
  ])('%j', async (words, code, err) => {
    const run = await ask(...words);
    expect({ code: run.code, out: run.out }).toEqual({ code, out: '' });
    expect(run.err).toMatch(err);
  });
});

describe('explain', () => {
  test.each([
    ['10.244.1.11', '10.96.0.10:80', 0, 'FORWARDED'],
    ['10.244.1.11', '10.96.0.53:53/udp', 0, 'FORWARDED'],
    ['node', 'svc/shop/idle', 3, 'REJECTED'],
    ['198.18.0.10', '203.0.113.10:80', 4, 'DROPPED'],
    ['outside', '10.96.0.99:80', 6, 'NOT A SERVICE'],
    ['pod/shop/pod-a', 'svc/shop/api:http', 0, 'FORWARDED'],
    ['node', '[fd00:96::60]:80', 0, 'FORWARDED'],
  ])('from %s to %s: %d', async (from, to, code, verdict) => {
    const run = await ask('explain', '--from', from, '--to', to);
    expect(run.err).toBe('');
    expect(run.code).toBe(code);
    const [first = ''] = run.out.split('\n');
    expect(first).toMatch(new RegExp(` ${verdict}$`));
  });

  test('a field that decides, with its line', async () => {
    const { out } = await ask('explain', '--from', '198.18.0.10', '--to', '203.0.113.10:80');
    expect(out).toMatch(
      /loadBalancerSourceRanges 192\.0\.2\.0\/24.* do not contain 198\.18\.0\.10 .*examples\/web\.yaml:\d+/,
    );
    expect(out).toContain('if allowed 10.244.1.11:8081 (pod-a, this node), client address kept');
  });

  test('with a namespace, names go without it', async () => {
    const full = await ask('explain', '--from', 'pod/shop/pod-a', '--to', 'svc/shop/api:http');
    expect(await ask('explain', '-n', 'shop', '--from', 'pod/pod-a', '--to', 'svc/api:http')).toEqual(full);
    expect(await ask('explain', '-n', 'shop', 'svc/web')).toEqual(await ask('explain', 'shop/web'));
    expect(await ask('explain', 'svc/shop/web')).toEqual(await ask('explain', 'shop/web'));
  });

  test.each([
    ['shop/web', 0],
    ['shop/web:http', 0],
    ['shop/idle', 3],
  ])('%s: %d', async (service, code) => {
    const run = await ask('explain', service);
    expect(run).toMatchObject({ code, err: '' });
    expect(run.out).toMatch(new RegExp(`^${service.split(':')[0]} `));
  });

  test('a Service that is not for a proxy', async () => {
    const headless = file(
      'headless.yaml',
      'apiVersion: v1\nkind: Service\nmetadata: { name: db, namespace: shop }\nspec:\n  clusterIP: None\n',
    );
    const { code, out } = await junction('explain', 'shop/db', '--manifests', headless);
    expect(code).toBe(6);
    expect(out).toMatch(/headless/);
    expect(out).toContain('headless.yaml:1');
  });

  test.each([
    [[], /what to explain\? NAMESPACE\/NAME, or a packet with --from and --to/],
    [['--from', 'node'], /whom does it dial\? --to is missing/],
    [['--to', '10.96.0.10:80'], /who sends the packet\? --from is missing/],
    [['shop/web', '--from', 'node'], /either a Service, shop\/web, or a packet/],
    [['shop/web', 'shop/api'], /unexpected argument "shop\/api"/],
    [['shop/web', '--live'], /--live and --manifests are 2 sources/],
    [['shop/web', '--bundle', 'b.gz'], /--manifests and --bundle are 2 sources/],
    [['shop/web', '--output', 'xml'], /"xml".*--output/],
  ])('%j', async (words, err) => {
    const run = await ask('explain', ...words);
    expect({ code: run.code, out: run.out }).toEqual({ code: 2, out: '' });
    expect(run.err).toMatch(err);
  });

  test.each([
    ['', '10.96.0.10:80'],
    ['10.244.1.11', ''],
    ['10.244.1.11', '10.96.0.10'],
    ['10.244.1.11', '10.96.0.10:http'],
    ['10.244.1.11', '10.96.0.10:99999'],
    ['10.244.1.11', 'fd00:96::60:80'],
    ['10.244.1.11', '[fd00:96::60]:80'],
    ['10.244.1.11', '10.96.0.10:80/icmp'],
    ['pod/shop/nobody', '10.96.0.10:80'],
    ['pod/shop', '10.96.0.10:80'],
    ['everywhere', '10.96.0.10:80'],
    ['10.244.1.11%a very long interface', '10.96.0.10:80'],
    ['node', 'svc/shop/wep'],
    ['node', 'svc/shop/web:https'],
    ['node', 'svc/../..'],
    ['node', 'svc/'],
    ['\u001b[2J', '\u202e'],
    ['x'.repeat(5000), 'y'.repeat(5000)],
  ])('nonsense from %j to %j', async (from, to) => {
    const run = await ask('explain', `--from=${from}`, `--to=${to}`);
    expect(run.out).toBe('');
    expect([1, 2]).toContain(run.code);
    expect(run.err).toMatch(/^junction: .+\n {2}what to do: .+\n$/);
    expect(run.err.length).toBeLessThan(1000);
    expect(run.err).not.toMatch(/[\p{Cf}]|\n\s+at /u);
    expect(run.err).not.toContain('\u001b');
  });
});

describe('sources', () => {
  test('problems of manifests are said, and the rest is answered', async () => {
    const broken = file(
      'broken.yaml',
      'apiVersion: v1\nkind: Service\nmetadata: { name: bad, namespace: shop }\nspec: { clusterIP: 10.96.0.9, ports: [{ port: 70000 }] }\n',
    );
    const run = await junction(
      'explain',
      'shop/bad',
      '--manifests',
      `${broken},${EXAMPLES}`,
      '--hostname-override=node1',
    );
    expect(run.err).toMatch(/broken\.yaml:1: .*70000/);
    expect(run.out).toMatch(/70000 is out of range/);
    expect((await junction('services', '--manifests', `${broken},${EXAMPLES}`)).out).toContain('shop/web');
  });

  test('nothing there', async () => {
    const run = await junction('services', '--manifests', '/nowhere');
    expect(run).toMatchObject({ code: 1, out: '' });
    expect(run.err).toContain('no Service, EndpointSlice, Endpoints or Node in /nowhere that can be used');
  });

  test('a Node that is not there is noted', async () => {
    const run = await junction('services', `--manifests=${EXAMPLES}`, '--hostname-override=nodd1');
    expect(run.err).toMatch(/^warning: no Node is named nodd1; there are node1, node2/);
  });

  test('a cluster that cannot be reached', async () => {
    const run = await junction('services', '--master', 'http://127.0.0.1:1');
    expect(run).toMatchObject({ code: 1, out: '' });
    expect(run.err).toMatch(/\(API_UNREACHABLE\)\n {2}what to do: Check the address/);
  });

  test.each([['status'], ['watch']])('%s is of a running proxy', async (name) => {
    const run = await junction(name, `--manifests=${EXAMPLES}`);
    expect(run).toMatchObject({ code: 2, out: '' });
    expect(run.err).toContain('flag --manifests has no effect on this command');
  });
});
