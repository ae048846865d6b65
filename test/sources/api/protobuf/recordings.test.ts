/** What kube-apiserver 1.36.4 sent, byte for byte. */
import { describe, expect, it } from 'vitest';
import { Interner } from '../../../../src/sources/api/interner.ts';
import { endpointSlices, services } from '../../../../src/sources/api/resources.ts';
import { encodeFrame, encodeObject, envelope } from '../../../support/apiServer/protobuf/encode.ts';
import { readList, readWatch, recording, seen } from './recording.ts';

const SERVICES = services(new Interner());
const SLICES = endpointSlices(new Interner());
const object = (value: object): object => ({ projection: { kind: 'object', value } });

describe.each([1, 7, 100_000])('in pieces of %i bytes', (size) => {
  it('a list of services', () => {
    const { objects, envelope: list } = readList('protobuf', SERVICES, recording('services.list.bin'), size);
    expect(list).toMatchObject({ kind: 'ServiceList', resourceVersion: '96', hasItems: true });
    expect(list.continueToken).toMatch(/^eyJ2Ijoi/);
    expect(objects.map(seen)).toMatchObject([
      { key: 'default/kubernetes' },
      {
        key: 'lab/s1',
        ...object({
          namespace: 'lab',
          name: 's1',
          type: 'NodePort',
          clusterIPs: { IPv4: '10.96.5.1' },
          ports: [{ name: 'http', protocol: 'TCP', port: 80, nodePort: 31_997 }],
          affinitySeconds: 10_800,
          externalTrafficPolicy: 'Local',
        }),
      },
    ]);
  });

  it('a list of endpoint slices', () => {
    const body = recording('endpointslices.list.bin');
    const { objects, envelope: list } = readList('protobuf', SLICES, body, size);
    expect(list).toMatchObject({ kind: 'EndpointSliceList', resourceVersion: '96' });
    const flags = { nodeName: undefined, ready: true, serving: true, terminating: false };
    const hinted = { nodeName: 'node1', zone: 'zone-a', zoneHints: ['zone-a'], nodeHints: ['node1'] };
    expect(objects.map(seen)).toMatchObject([
      object({
        service: 'kubernetes',
        ports: [{ name: 'https', protocol: 'TCP', port: 6443 }],
        endpoints: [{ ip: '192.168.100.2', ...flags }],
      }),
      object({
        namespace: 'lab',
        name: 's1-a',
        service: 's1',
        family: 'IPv4',
        endpoints: [{ ip: '10.244.1.11', ...hinted }],
      }),
      object({ name: 's2-a', endpoints: [{ ip: '10.244.1.12' }] }),
    ]);
  });

  it('a watch', () => {
    expect(readWatch('protobuf', SERVICES, recording('services.watch.bin'), size)).toMatchObject([
      { type: 'MODIFIED', object: { key: 'lab/s1', resourceVersion: '98' } },
      { type: 'BOOKMARK', object: { key: undefined, resourceVersion: '98', endsInitialEvents: false } },
    ]);
  });

  it('a watch that begins with every object, the same as JSON and as protobuf', () => {
    const frames = readWatch('protobuf', SERVICES, recording('services.stream.bin'), size);
    expect(frames).toMatchObject([
      { type: 'ADDED', object: { key: 'default/kubernetes', endsInitialEvents: false } },
      { type: 'BOOKMARK', object: { key: undefined, endsInitialEvents: true } },
    ]);
    const json = readWatch('json', SERVICES, recording('services.stream.ndjson'), size);
    expect(frames.map((frame) => seen(frame.object))).toEqual(json.map((frame) => seen(frame.object)));
  });
});

it('a list that is cut off is never taken for a whole one', () => {
  const bytes = recording('endpointslices.list.bin');
  // After the list itself come two empty fields.
  for (let length = 0; length < bytes.length - 4; length++) {
    expect(() => {
      const { hasItems } = readList('protobuf', SLICES, bytes.subarray(0, length)).envelope;
      if (!hasItems) throw new Error('no list');
    }, `cut at ${length}`).toThrow(/ended before|no list/);
  }
});

it('the test API server writes the same bytes', () => {
  const lines = recording('services.stream.ndjson').toString('utf8').trim().split('\n');
  const bytes = lines.map((line) => {
    const event = JSON.parse(line) as { readonly type: string; readonly object: object };
    return encodeFrame(event.type, envelope('Service', 'v1', encodeObject('Service', event.object)));
  });
  expect(Buffer.concat(bytes).equals(recording('services.stream.bin'))).toBe(true);
});
