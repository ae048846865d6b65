/** The same object as JSON and as protobuf is the same value, with the same messages. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeObject } from '../../../../src/sources/api/protobuf/object.ts';
import { receivedObject } from '../../../../src/sources/api/received.ts';
import { anyObject, KINDS, ORDERLY_KINDS } from './objects.ts';
import { seen } from './recording.ts';
import { encodeObject, varint } from '../../../support/apiServer/protobuf/encode.ts';
import { numRuns } from '../../../support/randomCases.ts';

describe('JSON and protobuf', () => {
  it.each(KINDS)('of $resource.kind are the same value', ({ resource, objects }) => {
    const kinds = new Set<string>();
    fc.assert(
      fc.property(objects, (raw) => {
        const json = receivedObject(JSON.parse(JSON.stringify(raw)), resource.project);
        const protobuf = decodeObject(encodeObject(resource.kind, raw), resource);
        expect(seen(protobuf)).toEqual(seen(json));
        kinds.add(protobuf.project().kind);
      }),
    );
    expect([...kinds].sort()).toEqual(
      resource.kind === 'Service' || resource.kind === 'EndpointSlice'
        ? ['ignored', 'invalid', 'object']
        : ['invalid', 'object'],
    );
  });

  it.each(ORDERLY_KINDS)('of $resource.kind that is in order are the same value', ({ resource, objects }) => {
    let straight = 0;
    fc.assert(
      fc.property(objects, (raw) => {
        const json = receivedObject(JSON.parse(JSON.stringify(raw)), resource.project);
        const bytes = encodeObject(resource.kind, raw);
        expect(seen(decodeObject(bytes, resource))).toEqual(seen(json));
        if (resource.readStraight?.(bytes) !== undefined) straight++;
      }),
    );
    expect(straight).toBeGreaterThan(0.8 * numRuns);
  });

  it('are the same value with fields that this version does not know', () => {
    const unknownField = fc.oneof(
      fc.nat().map((value) => Buffer.concat([Buffer.of(0xb0, 0x3e), varint(BigInt(value))])),
      fc
        .uint8Array({ maxLength: 20 })
        .map((bytes) => Buffer.concat([Buffer.of(0xb2, 0x3e, bytes.length), bytes])),
      fc.constant(Buffer.of(0xb1, 0x3e, 1, 2, 3, 4, 5, 6, 7, 8)),
      fc.constant(Buffer.of(0xb5, 0x3e, 1, 2, 3, 4)),
      // A group with a group in it.
      fc.constant(Buffer.of(0xb3, 0x3e, 0x0b, 0x08, 0x01, 0x0c, 0xb4, 0x3e)),
    );
    fc.assert(
      fc.property(anyObject, fc.array(unknownField), ({ resource, bytes }, fields) => {
        const plain = decodeObject(bytes, resource);
        const padded = decodeObject(Buffer.concat([...fields, bytes, ...fields]), resource);
        expect(seen(padded)).toEqual(seen(plain));
      }),
    );
  });
});
