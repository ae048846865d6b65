import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { socketPaths, systemBusPaths } from '../../../src/system/dbus/connection.ts';
import {
  decodeMessage,
  encodeMessage,
  MalformedMessage,
  type DbusMessage,
  messageBytes,
} from '../../../src/system/dbus/codec.ts';

function bytes(...parts: readonly (string | number)[]): Uint8Array {
  return Buffer.concat(
    parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : Buffer.from([part]))),
  );
}

const zeros = (count: number): string => '\0'.repeat(count);

/** dbus-send --system --dest=a.b --type=method_call /p a.b.M string:hi */
const CALL = bytes(
  'l',
  1, // a call
  2, // that starts nobody
  1, // version
  `\x07${zeros(3)}`, // bytes of body
  `\x05${zeros(3)}`, // serial
  `\x47${zeros(3)}`, // bytes of fields
  `\x01\x01o\0\x02${zeros(3)}/p\0${zeros(5)}`,
  `\x02\x01s\0\x03${zeros(3)}a.b\0${zeros(4)}`,
  `\x03\x01s\0\x01${zeros(3)}M\0${zeros(6)}`,
  `\x06\x01s\0\x03${zeros(3)}a.b\0${zeros(4)}`,
  `\x08\x01g\0\x01s\0`,
  zeros(1),
  `\x02${zeros(3)}hi\0`,
);
const MESSAGE: DbusMessage = {
  type: 'call',
  serial: 5,
  path: '/p',
  interface: 'a.b',
  member: 'M',
  destination: 'a.b',
  signature: 's',
  body: ['hi'],
};

describe('a message', () => {
  it('is written', () => {
    const written = Buffer.from(encodeMessage(MESSAGE));
    expect(written.toString('latin1')).toBe(Buffer.from(CALL).toString('latin1'));
  });

  it('is read', () => expect(decodeMessage(CALL)).toEqual(MESSAGE));

  it('is read in the other byte order', () => {
    const signal = bytes(
      `B\x04\0\x01${zeros(3)}\x0f${zeros(3)}\x09${zeros(3)}\x0a`,
      `\x08\x01g\0\x04suqy\0`,
      zeros(6),
      `${zeros(3)}\x01x\0`,
      zeros(2),
      `\0\0\x01\x02\0\x03\x07`,
    );
    expect(decodeMessage(signal)).toMatchObject({ type: 'signal', serial: 9, body: ['x', 258, 3, 7] });
  });

  it('comes out as it went in', () => {
    const value = fc.oneof(fc.string({ unit: 'binary' }), fc.boolean(), fc.nat({ max: 0xffffffff }));
    const types = { string: 's', boolean: 'b', number: 'u' } as const;
    fc.assert(
      fc.property(fc.array(value), fc.string({ minLength: 1 }), fc.nat(), (body, member, serial) => {
        const signature = body.map((each) => types[typeof each as keyof typeof types]).join('');
        const message: DbusMessage = {
          type: 'signal',
          serial,
          member,
          body,
          ...(signature !== '' && { signature }),
        };
        const written = encodeMessage(message);
        expect(messageBytes(written)).toBe(written.length);
        expect(decodeMessage(written)).toEqual(message);
      }),
    );
  });

  it('says how long it is as soon as its first sixteen bytes are there', () => {
    expect(messageBytes(CALL.subarray(0, 15))).toBeUndefined();
    expect(messageBytes(CALL.subarray(0, 16))).toBe(CALL.length);
  });

  it('is read up to the first value that is not read here', () => {
    const message = encodeMessage({ ...MESSAGE, signature: 'su', body: ['hi', 1] });
    const at = Buffer.from(message).indexOf('su\0');
    message[at + 1] = 'v'.charCodeAt(0);
    expect(decodeMessage(message).body).toEqual(['hi']);
  });

  it('that is damaged is an error, never a crash or a read beyond its end', () => {
    fc.assert(
      fc.property(fc.nat(CALL.length - 1), fc.nat(255), fc.nat(CALL.length), (at, byte, length) => {
        const damaged = Uint8Array.from(CALL);
        damaged[at] = byte;
        try {
          messageBytes(damaged);
          decodeMessage(damaged.slice(0, Math.max(16, length)));
        } catch (error) {
          expect(error).toBeInstanceOf(MalformedMessage);
        }
      }),
    );
  });

  it('of absurd length is refused', () => {
    const huge = Uint8Array.from(CALL);
    huge.set([0xff, 0xff, 0xff, 0x7f], 4);
    expect(() => messageBytes(huge)).toThrow(MalformedMessage);
  });
});

describe('the address of a bus', () => {
  it.each([
    ['unix:path=/run/dbus/system_bus_socket', ['/run/dbus/system_bus_socket']],
    ['unix:path=/tmp/a%20b,guid=123', ['/tmp/a b']],
    ['unix:abstract=/tmp/dbus-x,guid=1;unix:path=/y', ['\0/tmp/dbus-x', '/y']],
    ['tcp:host=localhost,port=1;unix:tmpdir=/tmp', []],
    ['', []],
  ])('%s', (address, paths) => expect(socketPaths(address)).toEqual(paths));

  it('is what the environment says, or the usual places', () => {
    expect(systemBusPaths({ DBUS_SYSTEM_BUS_ADDRESS: 'unix:path=/x' })).toEqual(['/x']);
    expect(systemBusPaths({ DBUS_SYSTEM_BUS_ADDRESS: '' })).toEqual([
      '/run/dbus/system_bus_socket',
      '/var/run/dbus/system_bus_socket',
    ]);
  });
});
