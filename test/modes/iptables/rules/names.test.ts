import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  endpointChain,
  hash16,
  isServiceChain,
  PREFIXES,
  ruleProtocol,
  serviceHash,
} from '../../../../src/modes/iptables/rules/names.ts';

describe('the first 16 characters of the base32 of a SHA-256', () => {
  test.each([
    ['ns1/svc1:p80tcp', 'XPGD46QRK7WJZT7O'],
    ['ns2/svc2:p80tcp', 'GNZBNJ2PO5MGZ6GT'],
    ['ns5/svc5:p80tcp', 'NUKIZ6OKUXPJNT4C'],
    ['ns1/svc1:p80tcp10.180.0.1:80', 'SXIVWICOYRO3J4NJ'],
    ['ns5/svc5:p80tcp10.180.0.3:80', 'I77PXRDZVX7PMWMN'],
    ['default/kubernetes:httpstcp', 'NPX46M4PTMTKRN6Y'],
    ['kube-system/kube-dns:dnsudp', 'TCOU7JCQXEZGVUNU'],
    ['kube-system/kube-dns:dns-tcptcp', 'ERIFXISQEP7F7OF4'],
    ['kube-system/kube-dns:metricstcp', 'JD5MR3NA4I4DYORP'],
    ['default/webtcp', 'LOLE4ISW44XBNF3G'],
    ['default/webudp', 'OITG2N52AJRCLORJ'],
    ['default/websctp', '6XBQYRW2PBWS6JPR'],
    ['default/kubernetes:httpstcp192.168.0.1:6443', 'T2VFZROVKZVVWWZU'],
    ['kube-system/kube-dns:dnsudp10.244.0.2:53', 'YIL6JZP7A3QYXJU2'],
    ['default/webtcp10.244.1.5:8080', 'XQWD6PXGZUTOOIVQ'],
    ['ns1/svc1:p80tcp[fd00:10:180::1]:80', 'OGYCNMB4EMRUSJ6N'],
  ])('%s: %s', (text, expected) => expect(hash16(text)).toBe(expected));

  test('of any text', () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
    const reference = (text: string): string => {
      const bits = [...createHash('sha256').update(text).digest()]
        .map((byte) => byte.toString(2).padStart(8, '0'))
        .join('');
      return Array.from(
        { length: 16 },
        (_, index) => alphabet[Number.parseInt(bits.slice(index * 5, index * 5 + 5), 2)],
      ).join('');
    };
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 300, size: 'max' }), (text) => {
        expect(hash16(text)).toBe(reference(text));
      }),
    );
  });
});

test('a service port and its endpoint', () => {
  const port = { name: 'kube-system/kube-dns:dns', protocol: 'UDP' } as const;
  expect(serviceHash(port)).toBe('TCOU7JCQXEZGVUNU');
  expect(endpointChain(port, '10.244.0.2:53')).toBe('KUBE-SEP-YIL6JZP7A3QYXJU2');
  expect(endpointChain({ name: 'ns1/svc1:p80', protocol: 'TCP' }, '[fd00:10:180::1]:80')).toBe(
    'KUBE-SEP-OGYCNMB4EMRUSJ6N',
  );
});

test.each([
  ['TCP', 'tcp'],
  ['UDP', 'udp'],
  ['SCTP', 'sctp'],
] as const)('%s is %s in rules', (protocol, expected) => expect(ruleProtocol(protocol)).toBe(expected));

describe('a restarted process knows its chains by their names', () => {
  test.each(Object.values(PREFIXES))('%s', (prefix) => {
    expect(isServiceChain(`${prefix}XPGD46QRK7WJZT7O`)).toBe(true);
    expect(`${prefix}XPGD46QRK7WJZT7O`.length).toBeLessThanOrEqual(28);
  });
  test.each([
    'KUBE-SERVICES',
    'KUBE-SVC-',
    'KUBE-SVC-XPGD46QRK7WJZT7',
    'KUBE-SVC-XPGD46QRK7WJZT7OO',
    'KUBE-SVC-xpgd46qrk7wjzt7o',
    'KUBE-SVC-XPGD46QRK7WJZT71',
    'MY-KUBE-SVC-XPGD46QRK7WJZT7O',
    'KUBE-KUBELET-CANARY',
    'KUBE-MARK-MASQ',
    'DOCKER',
  ])('not %s', (chain) => expect(isServiceChain(chain)).toBe(false));
});
