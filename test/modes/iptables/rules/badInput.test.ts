/**
 * Whoever may create a Service must not be able to write a rule of their own, to stop the proxy, or to harm another
 * service. So: hostile objects beside a healthy one, through reading, planning and compiling.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LayoutName } from '../../../../src/modes/iptables/rules/fragment.ts';
import { LAYOUTS } from '../../../../src/modes/iptables/rules/layouts/index.ts';
import { CHAINS, isServiceChain } from '../../../../src/modes/iptables/rules/names.ts';
import { applyRestore, BUILT_IN_CHAINS } from './restore.ts';
import { wholeRestore } from '../../../../src/modes/iptables/rules/whole.ts';
import type { Family } from '../../../../src/model/ip.ts';
import { projectEndpoints, projectEndpointSlice } from '../../../../src/model/project/endpointSlice.ts';
import { projectNode } from '../../../../src/model/project/node.ts';
import { projectService } from '../../../../src/model/project/service.ts';
import { nodeView } from '../../../../src/plan/view.ts';
import { Cluster } from '../../../plan/cluster.ts';
import { service, SETTINGS, slice, VIEW } from '../../../plan/given.ts';
import { type RulesByChain, rulesByChain } from './goldenCluster.ts';
import { compileOptions } from '../compiled.ts';

const SERVICE = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: {
    name: 'evil',
    namespace: 'dark',
    creationTimestamp: '2020-01-01T00:00:00Z',
    labels: { app: 'evil' },
  },
  spec: {
    type: 'LoadBalancer',
    clusterIP: '10.96.66.6',
    clusterIPs: ['10.96.66.6', 'fd00:96::66'],
    ipFamilies: ['IPv4', 'IPv6'],
    ports: [
      { name: 'one', protocol: 'TCP', port: 80, nodePort: 30666 },
      { name: 'two', protocol: 'UDP', port: 81, nodePort: 30667 },
    ],
    externalIPs: ['198.18.66.1', '2001:db8:66::1'],
    loadBalancerSourceRanges: ['198.18.0.0/16', '2001:db8:66::/48'],
    sessionAffinity: 'ClientIP',
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 100 } },
    externalTrafficPolicy: 'Local',
    internalTrafficPolicy: 'Cluster',
    healthCheckNodePort: 32666,
  },
  status: { loadBalancer: { ingress: [{ ip: '198.18.66.2', ipMode: 'VIP' }, { ip: '2001:db8:66::2' }] } },
};

const SLICE = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: {
    name: 'evil-1',
    namespace: 'dark',
    labels: { 'kubernetes.io/service-name': 'evil' },
    annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': '2020-01-01T00:00:00Z' },
  },
  addressType: 'IPv4',
  ports: [
    { name: 'one', protocol: 'TCP', port: 8080 },
    { name: 'two', protocol: 'UDP', port: 8081 },
  ],
  endpoints: [
    {
      addresses: ['10.244.66.1'],
      nodeName: 'node-a',
      conditions: { ready: true, serving: true, terminating: false },
      hints: { forZones: [{ name: 'a' }], forNodes: [{ name: 'node-a' }] },
    },
    { addresses: ['10.244.66.2'], nodeName: 'node-b' },
  ],
};

const ENDPOINTS = {
  apiVersion: 'v1',
  kind: 'Endpoints',
  metadata: { name: 'evil', namespace: 'dark' },
  subsets: [
    {
      addresses: [{ ip: '10.244.66.3', nodeName: 'node-a' }],
      notReadyAddresses: [{ ip: '10.244.66.4' }],
      ports: [{ name: 'one', port: 8080, protocol: 'TCP' }],
    },
  ],
};

const NODE = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'node-a', labels: { 'topology.kubernetes.io/zone': 'a' } },
  spec: { podCIDRs: ['10.244.0.0/24', 'fd00:244::/64'] },
  status: { addresses: [{ type: 'InternalIP', address: '192.0.2.10' }] },
};

const STRINGS = [
  '"',
  "'",
  '\\',
  '\n',
  '\r\nCOMMIT\n',
  '\u0000',
  'evil\n-A INPUT -j ACCEPT',
  'evil -j ACCEPT',
  'evil" -j ACCEPT --comment "',
  '-j ACCEPT',
  '--help',
  '; rm -rf /',
  '$(reboot)',
  '`reboot`',
  '!',
  '日本',
  '\u202eevil',
  'é',
  '../../etc/passwd',
  '10.0.0.1 -j ACCEPT',
  '10.0.0.1\n',
  '10.0.0.1/24/8',
  '0.0.0.0/0 -j ACCEPT',
  '::1%lo -j ACCEPT',
  'KUBE-SERVICES',
  'None',
  '__proto__',
  'constructor',
  '',
  ' ',
  'a'.repeat(64),
  'a'.repeat(10_000),
  'a.'.repeat(5000),
];
const OTHERS = [
  null,
  undefined,
  true,
  false,
  -1,
  0,
  1,
  1.5,
  65_535,
  65_536,
  1e21,
  Number.NaN,
  Infinity,
  [],
  {},
  [[]],
  [null],
  [{}],
  { ip: 1 },
];

const anyHostile: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom<unknown>(...STRINGS) },
  { weight: 3, arbitrary: fc.constantFrom<unknown>(...OTHERS) },
  { weight: 1, arbitrary: fc.anything() },
  { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
  { weight: 1, arbitrary: fc.ipV4() },
  { weight: 1, arbitrary: fc.ipV6() },
);

type Path = readonly (string | number)[];

function pathsOf(value: unknown, at: Path = []): readonly Path[] {
  if (typeof value !== 'object' || value === null) return [at];
  const entries: readonly (readonly [string | number, unknown])[] = Array.isArray(value)
    ? [...(value as unknown[]).entries()]
    : Object.entries(value);
  return [at, ...entries.flatMap(([key, part]) => pathsOf(part, [...at, key]))];
}

function withValue(root: unknown, path: Path, value: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  if (Array.isArray(root))
    return root.map((part: unknown, index) => (index === key ? withValue(part, rest, value) : part));
  if (typeof root !== 'object' || root === null) return root;
  return { ...root, [key]: withValue(Reflect.get(root, key), rest, value) };
}

/** The template with some parts replaced. */
function spoiled(template: unknown): fc.Arbitrary<unknown> {
  const change = fc.tuple(fc.constantFrom(...pathsOf(template)), anyHostile);
  return fc
    .array(change, { minLength: 1, maxLength: 5 })
    .map((changes) => changes.reduce((raw: unknown, [path, value]) => withValue(raw, path, value), template));
}

const anyObject = fc.oneof(
  { weight: 4, arbitrary: spoiled(SERVICE) },
  { weight: 4, arbitrary: spoiled(SLICE) },
  { weight: 1, arbitrary: spoiled(ENDPOINTS) },
  { weight: 1, arbitrary: spoiled(NODE) },
  { weight: 1, arbitrary: fc.anything() },
);

const HEALTHY = service(
  'shop/healthy LoadBalancer 10.111.1.1 fd00:111::1 http:80/tcp@31111 lb=203.0.113.111 ranges=203.0.113.0/24 affinity=100 etp=Local hc=31112 born=1',
);
const HEALTHY_SLICE = slice(
  'shop/healthy-1 of healthy http:8080 | 10.244.111.1 node-a | 10.244.111.2 node-b',
);

/** What comes of reading each object as each kind that it may be. */
function take(cluster: Cluster, raw: unknown): void {
  const given = projectService(raw);
  if (given.kind === 'object') cluster.setService(given.value);
  const sliced = projectEndpointSlice(raw);
  if (sliced.kind === 'object') cluster.setSlice(sliced.value);
  const endpoints = projectEndpoints(raw);
  if (endpoints.kind === 'object') for (const each of endpoints.value) cluster.setSlice(each);
}

function compile(raws: readonly unknown[], family: Family, layout: LayoutName): string {
  const node = raws.map(projectNode).find((each) => each.kind === 'object')?.value;
  const view = family === 'IPv4' ? VIEW : nodeView(SETTINGS, node, family);
  const cluster = new Cluster(view, family);
  for (const raw of raws) take(cluster, raw);
  cluster.setService(HEALTHY);
  cluster.setSlice(HEALTHY_SLICE);
  cluster.replan();
  return wholeRestore(LAYOUTS[layout], cluster.planner, compileOptions(cluster.planner));
}

function healthyPart(rules: RulesByChain, own: ReadonlySet<string>): readonly string[] {
  return [...rules]
    .flatMap(([chain, list]) =>
      list
        .filter((rule) => own.has(chain) || /[\s"]shop\/healthy/.test(rule))
        .map((rule) => `${chain} ${rule}`),
    )
    .toSorted();
}

const FIXED: ReadonlySet<string> = new Set(Object.values(CHAINS));
const BUILT_IN: ReadonlySet<string> = new Set([...BUILT_IN_CHAINS.values()].flat());

describe.each([
  ['IPv4', 'current'],
  ['IPv6', 'current'],
  ['IPv4', 'classic'],
  ['IPv6', 'classic'],
] as const)('%s, layout %s', (family, layout) => {
  const alone = rulesByChain(compile([], family, layout));
  const own = new Set([...alone.keys()].filter((chain) => isServiceChain(chain.split(' ')[1] ?? '')));
  const expected = healthyPart(alone, own);

  test('hostile objects make no rule that is not ours, and take none from others', () => {
    fc.assert(
      fc.property(fc.array(anyObject, { minLength: 1, maxLength: 4 }), (raws) => {
        const text = compile(raws, family, layout);
        expect(text).toMatch(/^[\n -~]*$/);
        expect(() => applyRestore(new Map(), text)).not.toThrow();
        const rules = rulesByChain(text);
        for (const name of rules.keys()) {
          const chain = name.split(' ')[1] ?? '';
          expect(isServiceChain(chain) || FIXED.has(chain) || BUILT_IN.has(chain)).toBe(true);
        }
        for (const [name, list] of alone) {
          if (BUILT_IN.has(name.split(' ')[1] ?? '')) expect(rules.get(name)).toEqual(list);
        }
        expect(healthyPart(rules, own)).toEqual(expected);
      }),
    );
  });
});

test('the healthy service has rules at all', () => {
  const rules = rulesByChain(compile([], 'IPv4', 'current'));
  expect([...rules.keys()].filter((chain) => isServiceChain(chain.split(' ')[1] ?? ''))).toHaveLength(6);
});

test('the templates are sound, so that spoiling them means something', () => {
  expect(projectService(SERVICE).kind).toBe('object');
  expect(projectEndpointSlice(SLICE).kind).toBe('object');
  expect(projectEndpoints(ENDPOINTS).kind).toBe('object');
  expect(projectNode(NODE).kind).toBe('object');
  expect(compile([SERVICE, SLICE], 'IPv4', 'current')).toContain('dark/evil:one');
});
