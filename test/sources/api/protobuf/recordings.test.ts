/** What kube-apiserver 1.36.4 sent, byte for byte. */
import { describe, expect, it } from 'vitest';
import { frameReader, listReader, type WatchFrame } from '../../../../src/sources/api/encoding.ts';
import { Interner } from '../../../../src/sources/api/interner.ts';
import { endpointSlices, services } from '../../../../src/sources/api/resources.ts';
import { type ReceivedObject, receivedObject } from '../../../../src/sources/api/received.ts';
import { recording } from './recording.ts';
import { encodeFrame, encodeObject, envelope } from '../../../support/apiServer/protobuf/encode.ts';

/** In pieces, as a slow network would bring it. */
function* pieces(bytes: Buffer, size: number): Generator<Buffer> {
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size);
}

const SIZES = [1, 3, 7, 100, 100_000];
const valueOf = <T>(object: ReceivedObject<T>): unknown => {
  const projection = object.project();
  return projection.kind === 'object' ? projection.value : projection;
};

describe('a list', () => {
  it.each(SIZES)('of services, in pieces of %i bytes', (size) => {
    const reader = listReader('protobuf', services(new Interner()));
    const objects: ReceivedObject<unknown>[] = [];
    for (const piece of pieces(recording('services.list.bin'), size))
      reader.push(piece, (object) => objects.push(object));
    expect(reader.end()).toMatchObject({ kind: 'ServiceList', resourceVersion: '96', hasItems: true });
    expect(reader.end().continueToken).toMatch(/^eyJ2Ijoi/);
    expect(objects.map(({ key }) => key)).toEqual(['default/kubernetes', 'lab/s1']);
    expect(valueOf(objects[1] as ReceivedObject<unknown>)).toMatchObject({
      namespace: 'lab',
      name: 's1',
      type: 'NodePort',
      clusterIPs: { IPv4: '10.96.5.1' },
      ports: [{ name: 'http', protocol: 'TCP', port: 80, nodePort: 31_997 }],
      affinitySeconds: 10_800,
      externalTrafficPolicy: 'Local',
    });
  });

  it.each(SIZES)('of endpoint slices, in pieces of %i bytes', (size) => {
    const reader = listReader('protobuf', endpointSlices(new Interner()));
    const objects: ReceivedObject<unknown>[] = [];
    for (const piece of pieces(recording('endpointslices.list.bin'), size))
      reader.push(piece, (object) => objects.push(object));
    expect(reader.end()).toMatchObject({ kind: 'EndpointSliceList', resourceVersion: '96' });
    expect(objects.map(valueOf)).toMatchObject([
      {
        service: 'kubernetes',
        ports: [{ name: 'https', protocol: 'TCP', port: 6443 }],
        endpoints: [
          { ip: '192.168.100.2', nodeName: undefined, ready: true, serving: true, terminating: false },
        ],
      },
      {
        namespace: 'lab',
        name: 's1-a',
        service: 's1',
        family: 'IPv4',
        endpoints: [
          {
            ip: '10.244.1.11',
            nodeName: 'node1',
            zone: 'zone-a',
            zoneHints: ['zone-a'],
            nodeHints: ['node1'],
          },
        ],
      },
      { name: 's2-a', endpoints: [{ ip: '10.244.1.12' }] },
    ]);
  });

  it('that is cut off is never taken for a whole one', () => {
    const bytes = recording('endpointslices.list.bin');
    // After the list itself come two empty fields.
    for (let length = 0; length < bytes.length - 4; length++) {
      const reader = listReader('protobuf', endpointSlices(new Interner()));
      expect(() => {
        reader.push(bytes.subarray(0, length), () => undefined);
        const { hasItems } = reader.end();
        if (!hasItems) throw new Error('no list');
      }, `cut at ${length}`).toThrow(/ended before|no list/);
    }
  });
});

function framesOf(bytes: Buffer, size: number): readonly WatchFrame<unknown>[] {
  const reader = frameReader('protobuf', services(new Interner()), 'watching services');
  const frames: WatchFrame<unknown>[] = [];
  for (const piece of pieces(bytes, size)) reader.push(piece, (frame) => frames.push(frame));
  reader.end();
  return frames;
}

describe('a watch', () => {
  it.each(SIZES)('in pieces of %i bytes', (size) => {
    const [modified, bookmark, ...others] = framesOf(recording('services.watch.bin'), size);
    expect(others).toEqual([]);
    expect(modified).toMatchObject({ type: 'MODIFIED', object: { key: 'lab/s1', resourceVersion: '98' } });
    expect(bookmark).toMatchObject({
      type: 'BOOKMARK',
      object: { key: undefined, resourceVersion: '98', endsInitialEvents: false },
    });
  });

  it('that begins with every object has a mark after the last', () => {
    const frames = framesOf(recording('services.stream.bin'), 64);
    expect(frames.map(({ type, object }) => [type, object.key, object.endsInitialEvents])).toEqual([
      ['ADDED', 'default/kubernetes', false],
      ['BOOKMARK', undefined, true],
    ]);
  });

  it('is the same as JSON and as protobuf, and so are the bytes of the test API server', () => {
    const { project } = services(new Interner());
    const events = recording('services.stream.ndjson')
      .toString('utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { readonly type: string; readonly object: object });
    const frames = framesOf(recording('services.stream.bin'), 1000);
    expect(frames.map(({ object }) => object.project())).toEqual(
      events.map(({ object }) => receivedObject(object, project).project()),
    );
    const bytes = events.map(({ type, object }) =>
      encodeFrame(type, envelope('Service', 'v1', encodeObject('Service', object))),
    );
    expect(Buffer.concat(bytes).equals(recording('services.stream.bin'))).toBe(true);
  });
});
