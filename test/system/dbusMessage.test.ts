import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeMessage, encodeMessage } from '../../src/system/dbusMessage.ts';

const zeros = (count: number): string => '\0'.repeat(count);

/** dbus-send --system --dest=a.b --type=method_call /p a.b.M string:hi */
const CALL = Buffer.from(
  [
    `l\x01\x02\x01\x07${zeros(3)}\x05${zeros(3)}\x47${zeros(3)}`,
    `\x01\x01o\0\x02${zeros(3)}/p\0${zeros(5)}`,
    `\x02\x01s\0\x03${zeros(3)}a.b\0${zeros(4)}`,
    `\x03\x01s\0\x01${zeros(3)}M\0${zeros(6)}`,
    `\x06\x01s\0\x03${zeros(3)}a.b\0${zeros(4)}`,
    `\x08\x01g\0\x01s\0${zeros(1)}\x02${zeros(3)}hi\0`,
  ].join(''),
  'latin1',
);
const NAMES = { path: '/p', interface: 'a.b', member: 'M', destination: 'a.b' } as const;
const MESSAGE = { type: 'call', serial: 5, ...NAMES, body: ['hi'] } as const;

test('a message as dbus-send writes it', () => {
  expect(encodeMessage(MESSAGE).toString('latin1')).toBe(CALL.toString('latin1'));
  expect(decodeMessage(CALL)).toEqual({ message: MESSAGE, bytes: CALL.length });
  expect(decodeMessage(CALL.subarray(0, -1))).toBeUndefined();
});

test('any message is read as it was written, whatever follows it', () => {
  const body = fc.array(fc.oneof(fc.string({ unit: 'grapheme' }), fc.nat({ max: 2 ** 32 - 1 })));
  fc.assert(
    fc.property(body, fc.nat(), fc.uint8Array(), (values, replySerial, rest) => {
      const message = { type: 'return', serial: 1, replySerial, body: values } as const;
      const bytes = encodeMessage(message);
      expect(decodeMessage(Buffer.concat([bytes, rest]))).toEqual({ message, bytes: bytes.length });
    }),
  );
});

test('damaged bytes give a message, nothing yet, or an error', () => {
  fc.assert(
    fc.property(fc.nat({ max: CALL.length - 1 }), fc.nat({ max: 255 }), (at, byte) => {
      const damaged = Buffer.from(CALL);
      damaged[at] = byte;
      try {
        const decoded = decodeMessage(damaged);
        if (decoded) expect(decoded.bytes).toBeLessThanOrEqual(damaged.length);
      } catch (error) {
        expect(String(error)).toMatch(/the bus sent|out of range|outside buffer bounds/);
      }
    }),
    { numRuns: 2000 },
  );
});
