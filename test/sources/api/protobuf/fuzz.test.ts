/** Bytes that no API server would send: refused with a message, or read; never anything else. */
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ApiFailure } from '../../../../src/sources/api/failure.ts';
import { decodeObject, decodeStatus } from '../../../../src/sources/api/protobuf/object.ts';
import type { Resource } from '../../../../src/sources/api/resources.ts';
import { bytesField, tag, varint } from '../../../support/apiServer/protobuf/encode.ts';
import { numRuns } from '../../../support/randomCases.ts';
import { anyObject, KINDS, orderlyObject } from './objects.ts';
import { readList, readWatch, recording, seen } from './recording.ts';

/** Bytes changed, cut out, put in and repeated. */
const damage = fc.array(
  fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    drop: fc.nat({ max: 4 }),
    insert: fc.oneof(
      fc.uint8Array({ maxLength: 4 }),
      fc.constantFrom(
        Buffer.of(0xff, 0xff, 0xff, 0xff, 0x7f),
        Buffer.of(0x80),
        Buffer.of(0x0b),
        Buffer.of(0),
        Buffer.from('\n'),
      ),
    ),
  }),
  { minLength: 1, maxLength: 6 },
);

type Damage = readonly { readonly at: number; readonly drop: number; readonly insert: Uint8Array }[];

function damaged(bytes: Uint8Array, changes: Damage): Buffer {
  return changes.reduce((now, { at, drop, insert }) => {
    const place = Math.floor(at * now.length);
    return Buffer.concat([now.subarray(0, place), insert, now.subarray(place + drop)]);
  }, Buffer.from(bytes));
}

function withoutStraight<T>({ kind, project }: Resource<T>): Pick<Resource<T>, 'kind' | 'project'> {
  return { kind, project };
}

const SERVICES = (KINDS[0] as (typeof KINDS)[number]).resource;

describe('an object', () => {
  it('of any bytes is read or refused', () => {
    fc.assert(
      fc.property(fc.constantFrom(...KINDS), fc.uint8Array({ maxLength: 200 }), ({ resource }, bytes) => {
        expect(['object', 'ignored', 'invalid']).toContain(decodeObject(bytes, resource).project().kind);
      }),
    );
  });

  it('that was damaged is the same on both ways', () => {
    let straight = 0;
    fc.assert(
      fc.property(fc.oneof(anyObject, orderlyObject), fc.option(damage), ({ resource, bytes }, changes) => {
        const now = changes === null ? bytes : damaged(bytes, changes);
        if (resource.readStraight?.(now) !== undefined) straight++;
        expect(seen(decodeObject(now, resource))).toEqual(seen(decodeObject(now, withoutStraight(resource))));
      }),
    );
    expect(straight).toBeGreaterThan(numRuns / 20);
  });

  it('that cannot be decoded keeps its name, and says where it breaks', () => {
    const metadata = Buffer.concat([bytesField(1, Buffer.from('web')), bytesField(3, Buffer.from('shop'))]);
    const bytes = Buffer.concat([bytesField(1, metadata), tag(2, 2), varint(9_999_999n), Buffer.from('x')]);
    const message =
      'the object cannot be decoded: a value of 9999999 bytes begins, and 1 are left (at byte 18 of 19)';
    expect(seen(decodeObject(bytes, SERVICES))).toMatchObject({
      key: 'shop/web',
      isBroken: true,
      projection: { kind: 'invalid', problems: [{ path: [], message, expected: 'a Service as protobuf' }] },
    });
  });
});

const JSON_LIST = Buffer.from(
  JSON.stringify({
    kind: 'ServiceList',
    metadata: { resourceVersion: '7', continue: 'x' },
    items: [{ metadata: { name: 'web', namespace: 'shop' }, spec: { clusterIP: 'ü"\\}]' } }, 7, null],
  }),
);

const list = (encoding: 'protobuf' | 'json') => (bytes: Uint8Array, size: number) => {
  const { objects, envelope } = readList(encoding, SERVICES, bytes, size);
  return { objects: objects.map(seen), envelope };
};
const watch = (encoding: 'protobuf' | 'json') => (bytes: Uint8Array, size: number) =>
  readWatch(encoding, SERVICES, bytes, size).map(({ type, object }) => ({ type, ...seen(object) }));

describe.each([
  { what: 'list', read: list('protobuf'), bodies: ['services.list.bin', 'endpointslices.list.bin'] },
  { what: 'watch', read: watch('protobuf'), bodies: ['services.watch.bin', 'services.stream.bin'] },
  { what: 'watch in JSON', read: watch('json'), bodies: ['services.stream.ndjson'] },
  { what: 'list in JSON', read: list('json'), bodies: [] },
])('a $what', ({ read, bodies }) => {
  const attempt = (bytes: Uint8Array, size: number): unknown => {
    try {
      return read(bytes, size);
    } catch (error) {
      if (error instanceof ApiFailure) return error;
      throw error;
    }
  };
  const wholes = bodies.length === 0 ? [JSON_LIST] : bodies.map(recording);

  it('of any bytes is read or refused, and the same wherever its chunks end', () => {
    const any = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.concat([Buffer.from('k8s\0'), bytes])),
      fc.tuple(fc.constantFrom(...wholes), damage).map(([body, changes]) => damaged(body, changes)),
    );
    fc.assert(
      fc.property(any, fc.integer({ min: 1, max: 64 }), (bytes, size) => {
        const whole = attempt(bytes, bytes.length + 1);
        const inPieces = attempt(bytes, size);
        // Where it ends is noticed sooner or later; what it says of a whole list is the same.
        if (!(whole instanceof ApiFailure)) expect(inPieces).toEqual(whole);
        else expect(inPieces).toBeInstanceOf(ApiFailure);
      }),
    );
  });
});

describe('a list', () => {
  it.each(['[]', 'null', '', '{"items":{"a":1}}', '{"items":[1]} x'])('in JSON is not %j', (text) => {
    const malformed = expect.objectContaining({ kind: 'malformed' }) as Error;
    expect(() => readList('json', SERVICES, Buffer.from(text))).toThrow(malformed);
  });

  it('whose item says that it is larger than an object can be is refused at once', () => {
    const items = Buffer.concat([tag(2, 2), varint(2n ** 40n)]);
    const bytes = Buffer.concat([Buffer.from('k8s\0'), tag(2, 2), varint(2n ** 41n), items]);
    expect(() => readList('protobuf', SERVICES, bytes)).toThrow('longer than');
  });

  it('with one broken object gives the others', () => {
    const body = recording('services.list.bin');
    // A length inside the second object.
    body[body.indexOf('ClientIP') - 1] = 0xff;
    const { objects, envelope } = readList('protobuf', SERVICES, body);
    expect(objects).toMatchObject([
      { key: 'default/kubernetes', isBroken: false },
      { key: 'lab/s1', isBroken: true },
    ]);
    expect(envelope.kind).toBe('ServiceList');
  });

  it('that comes byte by byte costs no more than its length', () => {
    const item = bytesField(2, bytesField(2, bytesField(99, Buffer.alloc(200_000))));
    const bytes = Buffer.concat([Buffer.from('k8s\0'), bytesField(2, item)]);
    const concat = vi.spyOn(Buffer, 'concat');
    onTestFinished(() => concat.mockRestore());
    expect(readList('protobuf', SERVICES, bytes, 1)).toMatchObject({ objects: [{ isBroken: false }] });
    const joined = concat.mock.results.reduce((sum, { value }) => sum + (value as Buffer).length, 0);
    expect(joined).toBeLessThan(2 * bytes.length);
  });
});

it('a Status of any bytes is one, or nothing', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      const status = decodeStatus(Buffer.concat([Buffer.from('k8s\0'), bytes]));
      expect(['undefined', 'object']).toContain(typeof status);
    }),
  );
});
