/** What the plan of a service is made from. */
import { expect, test } from 'vitest';
import { serviceObjects } from '../../src/explain/objects.ts';
import { type KubernetesObject, service, slice, slice6 } from '../scenarios/objects.ts';
import { clusterOf } from './given.ts';

const OBJECTS = [
  service('web', {
    clusterIP: '10.96.1.1 fd00:96::1',
    type: 'LoadBalancer',
    ports: 'http=80:30080 dns=53/UDP',
    externalIPs: ['203.0.113.5'],
    loadBalancerIPs: ['203.0.113.10'],
    sourceRanges: ['192.0.2.0/24', '198.51.100.0/24'],
    externalTrafficPolicy: 'Local',
    affinitySeconds: 60,
  }),
  slice('web', 'http=8080 dns=53/UDP', 'pod-a', 'pod-b not-ready', 'pod-c zone=east'),
  slice6('web', 'http=8080', 'pod-a'),
  service('plain', { clusterIP: '10.96.1.2' }),
];

test('its objects in the shape of Kubernetes, and the fields that decide', async () => {
  const answer = await serviceObjects(clusterOf(OBJECTS), 'default/web');
  const { service: whole, endpointSlices, unlisted, fields } = answer;
  expect(whole).toMatchObject({
    kind: 'Service',
    metadata: { namespace: 'default', name: 'web' },
    spec: { type: 'LoadBalancer', clusterIPs: ['10.96.1.1', 'fd00:96::1'], externalTrafficPolicy: 'Local' },
  });
  expect(endpointSlices.map(({ addressType }) => addressType)).toEqual(['IPv4', 'IPv6']);
  expect(unlisted).toBeUndefined();
  expect(fields.map(({ object, field, value }) => `${object.split(/[ /]/)[0]} ${field}: ${value}`)).toEqual([
    'Service spec.type: LoadBalancer',
    'Service spec.clusterIPs: [10.96.1.1, fd00:96::1]',
    'Service spec.ports[0]: {name: http, protocol: TCP, port: 80, nodePort: 30080}',
    'Service spec.ports[1]: {name: dns, protocol: UDP, port: 53}',
    'Service spec.externalIPs: [203.0.113.5]',
    'Service status.loadBalancer.ingress: [203.0.113.10]',
    'Service spec.loadBalancerSourceRanges: [192.0.2.0/24, 198.51.100.0/24]',
    'Service spec.internalTrafficPolicy: Cluster',
    'Service spec.externalTrafficPolicy: Local',
    'Service spec.sessionAffinity: ClientIP',
    'Service spec.sessionAffinityConfig.clientIP.timeoutSeconds: 60',
    'EndpointSlice ports[0]: {name: http, protocol: TCP, port: 8080}',
    'EndpointSlice ports[1]: {name: dns, protocol: UDP, port: 53}',
    'EndpointSlice ports[0]: {name: http, protocol: TCP, port: 8080}',
    'EndpointSlice endpoints[1]: {addresses: [10.244.1.12], conditions: {ready: false, serving: false, terminating: false}}',
    'EndpointSlice endpoints[2]: {addresses: [10.244.2.11], hints: {forZones: [east]}}',
  ]);
});

test('a field has the line of its object, and none where Kubernetes fills it in', async () => {
  const subject = clusterOf(OBJECTS, {}, { locate: (object) => `${object}.yaml:4` });
  const { fields } = await serviceObjects(subject, 'default/plain');
  expect(fields.map(({ field, where }) => [field, where])).toEqual([
    ['spec.type', undefined],
    ['spec.clusterIP', 'Service default/plain.yaml:4'],
    ['spec.ports[0]', 'Service default/plain.yaml:4'],
    ['spec.internalTrafficPolicy', undefined],
    ['spec.sessionAffinity', undefined],
  ]);
});

test('of thousands of endpoints, some, and how many more there are', async () => {
  const base = slice('web', 'http=8080', 'pod-a');
  const endpoints = Array.from({ length: 3000 }, (_, index) => ({
    addresses: [`10.245.${index >> 8}.${index & 255}`],
    conditions: { ready: false },
  }));
  const large: KubernetesObject = { ...base, endpoints };
  const answer = await serviceObjects(
    clusterOf([service('web', { clusterIP: '10.96.1.1', ports: 'http=80' }), large]),
    'default/web',
  );
  expect(answer.endpointSlices[0]?.['endpoints']).toHaveLength(100);
  expect(answer.unlisted).toEqual({ endpointSlices: 0, endpoints: 2900 });
  expect(answer.fields.filter(({ field }) => field.startsWith('endpoints['))).toHaveLength(20);
  expect(JSON.stringify(answer).length).toBeLessThan(30_000);
});
