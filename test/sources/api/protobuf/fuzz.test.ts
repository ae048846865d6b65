/** Bytes that no API server would send: refused with a message, or read; never anything else. */
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { frameReader, listReader } from '../../../../src/sources/api/encoding.ts';
import { ApiFailure } from '../../../../src/sources/api/failure.ts';
import { decodeObject, decodeStatus } from '../../../../src/sources/api/protobuf/object.ts';
import type { ReceivedObject } from '../../../../src/sources/api/received.ts';
import type { Resource } from '../../../../src/sources/api/resources.ts';
import { bytesField, tag, varint } from '../../../support/apiServer/protobuf/encode.ts';
import { anyObject, KINDS, orderlyObject } from './objects.ts';
import { recording } from './recording.ts';
import { numRuns } from '../../../support/randomCases.ts';

/** What comes of it, or the failure. */
function attempt<R>(read: () => R): R | ApiFailure {
  try {
    return read();
  } catch (error) {
    if (error instanceof ApiFailure) return error;
    throw error;
  }
}

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

function seen<T>(received: ReceivedObject<T>): object {
  const { key, resourceVersion, endsInitialEvents, isBroken } = received;
  return { key, resourceVersion, endsInitialEvents, isBroken, projection: received.project() };
}

function withoutStraight<T>({ kind, project }: Resource<T>): Pick<Resource<T>, 'kind' | 'project'> {
  return { kind, project };
}

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
    const { resource } = KINDS[0] as (typeof KINDS)[number];
    const metadata = Buffer.concat([bytesField(1, Buffer.from('web')), bytesField(3, Buffer.from('shop'))]);
    const bytes = Buffer.concat([bytesField(1, metadata), tag(2, 2), varint(9_999_999n), Buffer.from('x')]);
    const received = decodeObject(bytes, resource);
    expect(received).toMatchObject({ key: 'shop/web', isBroken: true });
    expect(received.project()).toEqual({
      kind: 'invalid',
      problems: [
        {
          path: [],
          message:
            'the object cannot be decoded: a value of 9999999 bytes begins, and 1 are left (at byte 18 of 19)',
          expected: 'a Service as protobuf',
        },
      ],
    });
  });
});

describe('a list', () => {
  const bodies = ['services.list.bin', 'endpointslices.list.bin'].map(recording);

  function readList(bytes: Uint8Array, size: number): unknown {
    const { resource } = KINDS[0] as (typeof KINDS)[number];
    return attempt(() => {
      const reader = listReader('protobuf', resource);
      const objects: object[] = [];
      for (let from = 0; from < bytes.length; from += size)
        reader.push(bytes.subarray(from, from + size), (object) => objects.push(seen(object)));
      return { objects, envelope: reader.end() };
    });
  }

  it('of any bytes is read or refused, and the same wherever its chunks end', () => {
    const any = fc.oneof(
      fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.concat([Buffer.from('k8s\0'), bytes])),
      fc.tuple(fc.constantFrom(...bodies), damage).map(([body, changes]) => damaged(body, changes)),
    );
    fc.assert(
      fc.property(any, fc.integer({ min: 1, max: 64 }), (bytes, size) => {
        const whole = readList(bytes, bytes.length + 1);
        const inPieces = readList(bytes, size);
        // Where it ends is noticed sooner or later; what it says of a whole list is the same.
        if (!(whole instanceof ApiFailure)) expect(inPieces).toEqual(whole);
        else expect(inPieces).toBeInstanceOf(ApiFailure);
      }),
    );
  });

  it('whose item says that it is larger than an object can be is refused at once', () => {
    const list = Buffer.concat([tag(2, 2), varint(2n ** 40n)]);
    const bytes = Buffer.concat([Buffer.from('k8s\0'), tag(2, 2), varint(2n ** 41n), list]);
    expect(readList(bytes, 1000)).toMatchObject({
      message: expect.stringContaining('longer than') as string,
    });
  });

  it('with one broken object gives the others', () => {
    const { resource } = KINDS[0] as (typeof KINDS)[number];
    const body = recording('services.list.bin');
    // A length inside the second object.
    const at = body.indexOf('ClientIP') - 1;
    body[at] = 0xff;
    const reader = listReader('protobuf', resource);
    const objects: unknown[] = [];
    reader.push(body, ({ key, isBroken }) => objects.push([key, isBroken]));
    expect(objects).toEqual([
      ['default/kubernetes', false],
      ['lab/s1', true],
    ]);
    expect(reader.end().kind).toBe('ServiceList');
  });

  it('that comes byte by byte costs no more than its length', () => {
    const item = bytesField(2, bytesField(2, bytesField(99, Buffer.alloc(200_000))));
    const bytes = Buffer.concat([Buffer.from('k8s\0'), bytesField(2, item)]);
    const concat = vi.spyOn(Buffer, 'concat');
    onTestFinished(() => concat.mockRestore());
    expect(readList(bytes, 1)).toMatchObject({ objects: [{ isBroken: false }] });
    const joined = concat.mock.results.reduce((sum, { value }) => sum + (value as Buffer).length, 0);
    expect(joined).toBeLessThan(2 * bytes.length);
  });
});

describe('a watch', () => {
  const bodies = ['services.watch.bin', 'services.stream.bin'].map(recording);

  it('of any bytes is read or refused, and the same wherever its chunks end', () => {
    const { resource } = KINDS[0] as (typeof KINDS)[number];
    const frames = (bytes: Uint8Array, size: number): unknown =>
      attempt(() => {
        const reader = frameReader('protobuf', resource, 'watching services');
        const events: object[] = [];
        for (let from = 0; from < bytes.length; from += size)
          reader.push(bytes.subarray(from, from + size), ({ type, object }) =>
            events.push({ type, ...seen(object) }),
          );
        reader.end();
        return events;
      });
    const any = fc.oneof(
      fc.uint8Array({ maxLength: 100 }),
      fc.tuple(fc.constantFrom(...bodies), damage).map(([body, changes]) => damaged(body, changes)),
    );
    fc.assert(
      fc.property(any, fc.integer({ min: 1, max: 64 }), (bytes, size) => {
        const whole = frames(bytes, bytes.length + 1);
        if (!(whole instanceof ApiFailure)) expect(frames(bytes, size)).toEqual(whole);
        else expect(frames(bytes, size)).toBeInstanceOf(ApiFailure);
      }),
    );
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
