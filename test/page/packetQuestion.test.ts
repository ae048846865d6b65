/** A question about a packet: the form, the address of the page, the API and the command line mean the same. */
import { describe, expect, test } from 'vitest';
import {
  addressOf,
  commandOf,
  explainPath,
  isAsked,
  localTime,
  type PacketQuestion,
  questionOf,
  settled,
  timeOfLocal,
} from '../../page/src/views/packetQuestion.ts';

function question(from: string, to: string, protocol = '', at = ''): PacketQuestion {
  return { from, to, protocol, at };
}

test('an address becomes a question, and a question the same address', () => {
  const address = '/packet?from=pod%2Fshop%2Fpod-a&to=svc%2Fshop%2Fdns%3A53&protocol=UDP';
  const asked = questionOf(new URL(address, 'http://node').searchParams);
  expect(asked).toEqual(question('pod/shop/pod-a', 'svc/shop/dns:53', 'UDP'));
  expect(addressOf(asked)).toBe(address);
});

test.each([
  ['10.96.0.53:53/udp', '10.96.0.53:53', 'UDP'],
  ['[fd00:96::60]:80/TCP', '[fd00:96::60]:80', 'TCP'],
  ['svc/shop/dns:53/udp', 'svc/shop/dns:53', 'UDP'],
  ['svc/shop/dns/udp', 'svc/shop/dns', 'UDP'],
  // A Service may be named after a protocol.
  ['svc/shop/udp', 'svc/shop/udp', ''],
  ['10.96.0.10:80', '10.96.0.10:80', ''],
])('the protocol of %s stands apart', (to, destination, protocol) => {
  expect(settled(question('node', to))).toEqual(question('node', destination, protocol));
});

test('what stands behind the destination is meant, not the field beside it', () => {
  expect(settled(question('node', '10.96.0.53:53/udp', 'TCP')).protocol).toBe('UDP');
});

test('a protocol that does not exist is none', () => {
  expect(questionOf(new URLSearchParams('from=node&to=x&protocol=icmp')).protocol).toBe('');
});

describe('asked', () => {
  test('both ends are needed', () => {
    expect(isAsked(question('node', ''))).toBe(false);
    expect(isAsked(question('', 'svc/a/b'))).toBe(false);
    expect(isAsked(question('node', 'svc/a/b'))).toBe(true);
  });

  test('of the API', () => {
    expect(explainPath(question('node', '10.96.0.53:53', 'UDP', '2026-05-01T12:00:00Z'))).toBe(
      '/v1/explain?from=node&to=10.96.0.53%3A53%2Fudp&at=2026-05-01T12%3A00%3A00Z',
    );
  });

  test.each([
    [question('outside', '203.0.113.10:80'), 'junction explain --from outside --to 203.0.113.10:80'],
    [
      question('10.244.1.11%cni0', '[fd00::1]:80', 'UDP', '2026-05-01T12:00:00Z'),
      "junction explain --from 10.244.1.11%cni0 --to '[fd00::1]:80/udp' --at 2026-05-01T12:00:00Z",
    ],
    [question("a'b; reboot", 'x'), String.raw`junction explain --from 'a'\''b; reboot' --to x`],
  ])('of a shell', (asked, command) => {
    expect(commandOf(asked)).toBe(command);
  });
});

test('a time in the field is the time in the address', () => {
  const at = '2026-11-16T14:03:20Z';
  expect(timeOfLocal(localTime(at))).toBe(at);
  expect(localTime('yesterday')).toBe('');
  expect(timeOfLocal('')).toBe('');
});
