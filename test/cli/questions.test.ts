/** The questions on manifests: patterns, names, exit codes and mistakes. What the answers look like: golden/*.txt. */
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { useFiles } from './files.ts';
import { junction, type Run } from './junction.ts';

const FLAGS = [
  '--manifests=examples',
  '--hostname-override=node1',
  '--cluster-cidr=10.244.0.0/16,fd00:244::/32',
];
const file = useFiles();

function ask(...words: readonly string[]): Promise<Run> {
  return junction(...words, ...FLAGS);
}

test.each([
  [['--problems'], ['shop/idle']],
  [['ca'], ['shop/cart', 'shop/catalog']],
  [['ca*'], ['shop/cart', 'shop/catalog']],
  [['*a*i'], ['shop/api']],
  [['shop/w*'], ['shop/web']],
  [['-n', 'shop', 'web'], ['shop/web']],
  [['-n', 'sho'], []],
  [['.*'], []],
])('services %j: %j', async (words, expected) => {
  const { out } = await ask('services', '--output=json', ...words);
  const rows = JSON.parse(out) as readonly { readonly service: string }[];
  expect(rows.map(({ service }) => service)).toEqual(expected);
});

test('YAML is the same as JSON', async () => {
  const [json, yaml] = [await ask('services', '-o', 'json'), await ask('services', '-o', 'yaml')];
  expect(parse(yaml.out)).toEqual(JSON.parse(json.out));
});

describe('explain', () => {
  test.each([
    ['10.244.1.11', '10.96.0.10:80', 0, 'FORWARDED'],
    ['10.244.1.11', '10.96.0.53:53/udp', 0, 'FORWARDED'],
    ['node', 'svc/shop/idle', 3, 'REJECTED'],
    ['198.18.0.10', '203.0.113.10:80', 4, 'DROPPED'],
    ['outside', '10.96.0.99:80', 6, 'NOT A SERVICE'],
    ['node', '[fd00:96::60]:80', 0, 'FORWARDED'],
  ])('from %s to %s: %d', async (from, to, code, verdict) => {
    const { out, err, ...run } = await ask('explain', '--from', from, '--to', to);
    expect({ ...run, err }).toEqual({ code, err: '' });
    expect(out.split('\n')[0]).toMatch(new RegExp(` ${verdict}$`));
  });

  test('with a namespace, names go without it', async () => {
    const full = await ask('explain', '--from', 'pod/shop/pod-a', '--to', 'svc/shop/api:http');
    expect(await ask('explain', '-n', 'shop', '--from', 'pod/pod-a', '--to', 'svc/api:http')).toEqual(full);
    const service = await ask('explain', 'shop/web');
    expect(await ask('explain', '-n', 'shop', 'svc/web')).toEqual(service);
    expect(await ask('explain', 'svc/shop/web')).toEqual(service);
  });

  test('a Service that is not for a proxy', async () => {
    const path = file('headless.yaml', 'kind: Service\nmetadata: { name: db }\nspec: { clusterIP: None }\n');
    const { code, out } = await junction('explain', 'default/db', '--manifests', path);
    expect(code).toBe(6);
    expect(out).toMatch(/it is headless.*headless\.yaml:1/);
  });

  test.each([
    ...['', 'pod/shop/nobody', 'pod/shop', 'everywhere', '10.244.1.11%a very long interface'].map((from) => [
      from,
      '10.96.0.10:80',
    ]),
    ...['', '10.96.0.10', '10.96.0.10:http', '10.96.0.10:99999', 'fd00:96::60:80', '10.96.0.10:80/icmp'].map(
      (to) => ['10.244.1.11', to],
    ),
    ...['wep', 'web:https', '../..', ''].map((name) => ['node', `svc/${name === '' ? '' : `shop/${name}`}`]),
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

describe('a mistake', () => {
  test.each<readonly [readonly string[], number, RegExp]>([
    [['endpoints', 'web'], 1, /"web"/],
    [['endpoints', '-n', 'bank', 'shop/web'], 2, /names another namespace than --namespace bank/],
    [['explain'], 2, /what to explain\? NAMESPACE\/NAME, or a packet with --from and --to/],
    [['explain', '--from', 'node'], 2, /whom does it dial\? --to is missing/],
    [['explain', '--to', '10.96.0.10:80'], 2, /who sends the packet\? --from is missing/],
    [['explain', 'shop/web', '--from', 'node'], 2, /either a Service, shop\/web, or a packet/],
    [['explain', 'shop/web', 'shop/api'], 2, /unexpected argument "shop\/api"/],
    [['explain', 'shop/web', '--live'], 2, /--live and --manifests are 2 sources/],
    [['explain', 'shop/web', '--bundle', 'b.gz'], 2, /--manifests and --bundle are 2 sources/],
    [['explain', 'shop/web', '--output', 'xml'], 2, /"xml".*--output/],
    [['status'], 2, /flag --manifests has no effect on this command/],
    [['watch'], 2, /flag --manifests has no effect on this command/],
  ])('%j: %d', async (words, code, err) => {
    const run = await ask(...words);
    expect({ code: run.code, out: run.out }).toEqual({ code, out: '' });
    expect(run.err).toMatch(err);
  });

  test.each([
    [
      ['--manifests', '/nowhere'],
      /no Service, EndpointSlice, Endpoints or Node in \/nowhere that can be used/,
    ],
    [['--master', 'http://127.0.0.1:1'], /\(API_UNREACHABLE\)\n {2}what to do: Check the address/],
  ])('services %j: no source', async (words, err) => {
    const run = await junction('services', ...words);
    expect(run).toMatchObject({ code: 1, out: '', err: expect.stringMatching(err) as string });
  });

  test('in a manifest is said, and the rest is answered', async () => {
    const broken = file(
      'broken.yaml',
      'kind: Service\nmetadata: { name: bad, namespace: shop }\nspec: { clusterIP: 10.96.0.9, ports: [{ port: 70000 }] }\n',
    );
    const run = await junction(
      'explain',
      'shop/bad',
      `--manifests=${broken},examples`,
      '--hostname-override=nodd1',
    );
    expect(run.err).toMatch(/broken\.yaml:1: .*70000/);
    expect(run.err).toMatch(/^warning: no Node is named nodd1; there are node1, node2/m);
    expect(run.out).toMatch(/70000 is out of range/);
    expect((await junction('services', '--manifests', `${broken},examples`)).out).toContain('shop/web');
  });

  test('no services', async () => {
    const empty = file('node.yaml', 'kind: Node\nmetadata: { name: node1 }\n');
    const run = await junction('services', '--manifests', empty, '--hostname-override=node1');
    expect(run).toEqual({ code: 0, out: 'No services.\n', err: '' });
  });
});
