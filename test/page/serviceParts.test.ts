/** The parts beside the path: what decides, which rules, which port, and what changed. */
import { describe, expect, test } from 'vitest';
import { endpointTree, seenBranches } from '../../page/src/diagram/endpointTree.ts';
import { focusOn, nextBox } from '../../page/src/diagram/focus.ts';
import { graphOf, type Graph } from '../../page/src/diagram/graph.ts';
import { layoutOf } from '../../page/src/diagram/layout.ts';
import { changedSince, isMarked, signaturesOf } from '../../page/src/diagram/marks.ts';
import { packetQuestion } from '../../page/src/diagram/questions.ts';
import { weightsOf } from '../../page/src/diagram/weights.ts';
import { withCounts } from '../../page/src/views/serviceCounting.ts';
import { decides } from '../../page/src/views/serviceDeciding.ts';
import { withKernelOf } from '../../page/src/views/serviceMerge.ts';
import { chosenPort, portLabel, serviceAddress } from '../../page/src/views/servicePorts.ts';
import { serviceStages } from '../../page/src/views/serviceRuleStages.ts';
import type {
  KernelExplanation,
  KernelStep,
  PacketExplanation,
  ServiceExplanation,
  ServicePortExplanation,
} from '../../src/explain/types.ts';
import { endpointRow, explainedExamples, packetTo, servicePort } from './support/ports.ts';

const examples = await explainedExamples();

function portNamed(service: string): ServicePortExplanation {
  const port = examples.find((each) => each.service === service)?.ports[0];
  if (!port) throw new Error(`no ${service}`);
  return port;
}

function graphNamed(service: string): Graph {
  const port = portNamed(service);
  const seen = seenBranches(endpointTree(port.endpoints), () => true);
  return graphOf(port, seen, weightsOf(port.endpoints));
}

const web = graphNamed('shop/web');

describe('focus', () => {
  test('a source has its frontends, their policies, its pools and the endpoints that it may reach', () => {
    expect(focusOn(web, 'source outside 0')).toEqual({
      boxes: new Set([
        'source outside 0',
        'frontend cluster IP 10.96.0.20:80',
        'policy internalTrafficPolicy: Cluster',
        'pool cluster',
        'frontend load-balancer IP 203.0.113.10:80',
        'policy externalTrafficPolicy: Local with ranges',
        'end dropped: not in loadBalancerSourceRanges',
        'frontend node port 192.168.100.2:30020',
        'policy externalTrafficPolicy: Local',
        'pool local',
        ...web.boxes.filter(({ column }) => column === 4).map(({ key }) => key),
      ]),
      packets: new Set([2, 5, 9]),
    });
  });

  test('arrow keys go along ways, and stay at the edges', () => {
    const { boxes } = layoutOf(web, 900);
    const along = (from: string, ...keys: readonly string[]): string =>
      keys.reduce((at, key) => nextBox(boxes, at, key) ?? 'no move', from);
    expect(along('source pod 0', 'ArrowDown')).toBe('source node 0');
    expect(along('source pod 0', 'ArrowUp')).toBe('source pod 0');
    expect(along('source pod 0', 'ArrowRight')).toBe('frontend cluster IP 10.96.0.20:80');
    expect(along('source pod 0', 'End')).toBe('source outside 1');
    expect(along('source outside 1', 'ArrowRight', 'ArrowRight')).toBe(
      'policy externalTrafficPolicy: Local with ranges',
    );
    expect(along('end dropped: not in loadBalancerSourceRanges', 'ArrowLeft')).toBe(
      'policy externalTrafficPolicy: Local with ranges',
    );
    expect(along('source pod 0', 'x')).toBe('no move');
  });
});

describe('fields that decide', () => {
  const deciding = (field: string, value: string): readonly string[] =>
    web.boxes
      .filter((box) => decides({ object: 'Service shop/web', field, value }, box))
      .map(({ key }) => key);

  test.each([
    ['spec.clusterIP', '10.96.0.20', ['frontend cluster IP 10.96.0.20:80']],
    ['status.loadBalancer.ingress', '[203.0.113.10]', ['frontend load-balancer IP 203.0.113.10:80']],
    ['spec.internalTrafficPolicy', 'Cluster', ['policy internalTrafficPolicy: Cluster']],
    [
      'spec.externalTrafficPolicy',
      'Local',
      ['policy externalTrafficPolicy: Local with ranges', 'policy externalTrafficPolicy: Local'],
    ],
    [
      'spec.loadBalancerSourceRanges',
      '[192.0.2.0/24]',
      ['policy externalTrafficPolicy: Local with ranges', 'end dropped: not in loadBalancerSourceRanges'],
    ],
    [
      'spec.ports[0]',
      '{name: http, port: 8080, nodePort: 30020}',
      ['frontend node port 192.168.100.2:30020'],
    ],
    ['spec.sessionAffinity', 'None', []],
  ])('%s', (field, value, boxes) => {
    expect(deciding(field, value)).toEqual(boxes);
  });

  test('an endpoint by its whole address', () => {
    const field = (value: string) => ({ object: 'EndpointSlice shop/web-1', field: 'endpoints[0]', value });
    const box = web.boxes.find(({ title }) => title === '10.244.1.11:8081');
    expect(box && decides(field('{addresses: [10.244.1.11], conditions: {ready: false}}'), box)).toBe(true);
    expect(box && decides(field('{addresses: [10.244.1.1], conditions: {ready: false}}'), box)).toBe(false);
  });
});

describe('rules', () => {
  const step = (chain: string, rule: string, more: Partial<KernelStep> = {}): KernelStep => ({
    hook: 'nat prerouting',
    table: 'ip junction',
    chain,
    rule,
    found: [],
    ...more,
  });

  test('each once, with what it found and who met it', () => {
    const walked = (to: string, steps: readonly KernelStep[]) =>
      packetTo(to, 'pod', {
        kernel: {
          mode: 'nftables',
          readAt: 0,
          readMs: 1,
          asPlanned: true,
          differences: [],
          outcomes: [{ verdict: 'forwarded', probability: 1, steps }],
          notes: [],
        },
      });
    const stages = serviceStages([
      walked('10.96.0.1', [
        step('services', 'jump any', { packets: 7 }),
        step('any', 'dnat', { found: ['a'], packets: 3 }),
      ]),
      walked('10.96.0.2', [
        step('services', 'jump any', { packets: 7 }),
        step('any', 'dnat', { found: ['b'], packets: 4 }),
        step('forward', 'drop', { hook: 'filter forward', isForeign: true }),
      ]),
    ]);
    expect(stages).toMatchObject([
      {
        hook: 'nat prerouting',
        rules: [
          { chain: 'services', packets: 7, elements: [], by: new Set([0, 1]) },
          {
            chain: 'any',
            elements: [
              { text: 'a', packets: 3, by: new Set([0]) },
              { text: 'b', packets: 4, by: new Set([1]) },
            ],
          },
        ],
      },
      { hook: 'filter forward', rules: [{ chain: 'forward', isForeign: true, by: new Set([1]) }] },
    ]);
  });
});

describe('ports', () => {
  const port = (servicePortId: string, family: 'IPv4' | 'IPv6' = 'IPv4') => ({
    ...servicePort([], []),
    servicePort: servicePortId,
    family,
  });
  const ports = [
    port('shop/dns:dns/UDP'),
    port('shop/dns:dns/TCP'),
    port('shop/dns:http/TCP'),
    port('shop/dns:http/TCP', 'IPv6'),
  ];

  test.each([
    ['', 'shop/dns:dns/UDP', 'IPv4'],
    ['port=http&family=IPv6', 'shop/dns:http/TCP', 'IPv6'],
    ['port=http', 'shop/dns:http/TCP', 'IPv4'],
    ['port=dns/TCP&family=IPv6', 'shop/dns:dns/TCP', 'IPv4'],
    ['port=nothing', 'shop/dns:dns/UDP', 'IPv4'],
  ])('?%s', (query, id, family) => {
    expect(chosenPort(ports, new URLSearchParams(query))).toMatchObject({ servicePort: id, family });
  });

  test('labels and addresses', () => {
    expect(portLabel(port('shop/plain/TCP'))).toBe('TCP');
    expect(portLabel(port('shop/dns:dns/UDP'))).toBe('dns/UDP');
    const query = new URLSearchParams('at=14:03&port=http');
    expect(serviceAddress('shop/web', query, { at: undefined })).toBe('/services/shop/web?port=http');
    expect(serviceAddress('shop/web', new URLSearchParams(), {})).toBe('/services/shop/web');
  });
});

describe('what changes', () => {
  test('an endpoint that is not ready any more marks itself, its pool, and nothing else', () => {
    const packets = [packetTo('10.96.0.20', 'pod')];
    const before = servicePort(packets, [endpointRow(1), endpointRow(2)]);
    const gone = endpointRow(2, {
      ready: false,
      pools: [],
      leftOut: { reason: 'not-ready', text: 'not ready' },
    });
    const after = servicePort(packets, [endpointRow(1), gone]);
    const changed = changedSince(signaturesOf(before), signaturesOf(after));
    expect(changed).toEqual(new Set(['pool cluster', 'row 10.244.0.2:8080']));
    const { boxes } = graphOf(
      after,
      seenBranches(endpointTree(after.endpoints), () => true),
      weightsOf(after.endpoints),
    );
    expect(boxes.filter((box) => isMarked(box, changed)).map(({ title }) => title)).toEqual([
      'cluster',
      '10.244.0.2:8080',
    ]);
  });

  test('rates alone mark nothing, and decide the widths', () => {
    const port = servicePort([packetTo('10.96.0.20', 'pod')], [endpointRow(1), endpointRow(2)]);
    const later = withCounts(port, [
      endpointRow(1, { rate: 30, ready: false }),
      endpointRow(2, { rate: 10 }),
    ]);
    expect(changedSince(signaturesOf(port), signaturesOf(later)).size).toBe(0);
    expect(weightsOf(port.endpoints).text).toMatch(/probabilities/);
    const weights = weightsOf(later.endpoints);
    expect(weights.text).toMatch(/connections/);
    expect(later.endpoints.map((row) => weights.totalShare([row]))).toEqual([0.75, 0.25]);
    expect(later.endpoints[0]?.ready).toBe(true);
  });
});

test('a packet as a question', () => {
  const [first] = portNamed('shop/dns').packets;
  expect(first && packetQuestion(first)).toEqual({ from: '10.244.0.250%eth0', to: '10.96.0.53:53/udp' });
  expect(packetQuestion(packetTo('10.96.0.20', 'node'))).toEqual({ from: 'node', to: '10.96.0.20:80' });
});

test('a later plan keeps what the kernel did before, and what only the kernel can tell', () => {
  const kernel: KernelExplanation = {
    mode: 'nftables',
    readAt: 0,
    readMs: 1,
    asPlanned: false,
    differences: ['planned: forwarded; kernel: dropped'],
    outcomes: [],
    notes: [],
  };
  const explained = (
    packets: readonly PacketExplanation[],
    ...codes: readonly string[]
  ): ServiceExplanation => ({
    node: 'node1',
    mode: 'nftables',
    service: 'shop/web',
    findings: codes.map((code) => ({ code, severity: 'error', text: code })),
    ports: [servicePort(packets, [])],
    changes: [],
  });
  const walked = explained([packetTo('10.96.0.20', 'pod', { kernel })], 'foreign-rule', 'none-ready');
  const later = withKernelOf(
    explained([packetTo('10.96.0.20', 'pod'), packetTo('10.96.0.21', 'pod')], 'hints-ignored'),
    walked,
  );
  expect(later.ports[0]?.packets.map((packet) => packet.kernel)).toEqual([kernel, undefined]);
  expect(later.findings.map(({ code }) => code)).toEqual(['hints-ignored', 'foreign-rule']);
});
