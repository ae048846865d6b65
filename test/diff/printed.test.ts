import { describe, expect, test } from 'vitest';
import { printedDifferences, printedObjects } from '../../src/diff/printed.ts';

const IPTABLES = `# IPv4, layout current, for: iptables-restore --noflush
*nat
:KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]
:KUBE-EMPTY - [0:0]
-A KUBE-SVC-AAAAAAAAAAAAAAAA -m comment --comment "shop/web:http" -j KUBE-SEP-BBBBBBBBBBBBBBBB
-A KUBE-SVC-AAAAAAAAAAAAAAAA -j RETURN
COMMIT
# Once each, where other programs have rules too.
#   -t nat -I OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
`;

const NFT = `add table ip junction
delete table ip junction
table ip junction {
\tcomment "Junction"
\tset service-ips {
\t\ttype ipv4_addr
\t\tcomment "addresses of services"
\t\telements = { 10.96.0.10,
\t\t\t     10.96.0.40 }
\t}

\tmap any-1 {
\t\ttype ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service
\t\telements = { 10.96.0.10 . tcp . 80 comment "shop/web:http" : 10.244.0.1 . 8080 }
\t}

\tchain any {
\t\tdnat ip to ip daddr . meta l4proto . th dport map @any-1
\t}
}
`;

const IPVS = `create KUBE-CLUSTER-IP hash:ip,port family inet hashsize 1024 maxelem 65536
flush KUBE-CLUSTER-IP
add KUBE-CLUSTER-IP 10.96.0.10,tcp:80
-A -t 10.96.0.10:80 -s rr
-a -t 10.96.0.10:80 -r 10.244.0.1:8080 -m -w 1
link add name kube-ipvs0 type dummy
address replace 10.96.0.10/32 dev kube-ipvs0
`;

describe('what a mode prints, as objects', () => {
  test('iptables', () => {
    expect([...printedObjects(IPTABLES)]).toEqual([
      [
        'chain nat KUBE-SVC-AAAAAAAAAAAAAAAA',
        ['-m comment --comment "shop/web:http" -j KUBE-SEP-BBBBBBBBBBBBBBBB', '-j RETURN'],
      ],
      ['chain nat KUBE-EMPTY', []],
      ['chain nat OUTPUT', ['-m comment --comment "kubernetes service portals" -j KUBE-SERVICES']],
    ]);
  });

  test('nftables', () => {
    expect([...printedObjects(NFT)]).toEqual([
      ['set service-ips', ['10.96.0.10', '10.96.0.40']],
      ['map any-1', ['10.96.0.10 . tcp . 80 comment "shop/web:http" : 10.244.0.1 . 8080']],
      ['chain any', ['dnat ip to ip daddr . meta l4proto . th dport map @any-1']],
    ]);
  });

  test('ipvs', () => {
    expect([...printedObjects(IPVS)]).toEqual([
      ['set KUBE-CLUSTER-IP', ['10.96.0.10,tcp:80']],
      [
        'virtual server -t 10.96.0.10:80',
        ['-A -t 10.96.0.10:80 -s rr', '-a -t 10.96.0.10:80 -r 10.244.0.1:8080 -m -w 1'],
      ],
      ['addresses of kube-ipvs0', ['10.96.0.10/32']],
    ]);
  });
});

describe('differences', () => {
  const objects = (
    entries: Readonly<Record<string, readonly string[]>>,
  ): ReadonlyMap<string, readonly string[]> => new Map(Object.entries(entries));

  test('an element that moved is none', () => {
    expect(printedDifferences(objects({ 'set a': ['1', '2'] }), objects({ 'set a': ['2', '1'] }))).toEqual(
      [],
    );
  });

  test('rules of a chain in another order are one', () => {
    expect(
      printedDifferences(objects({ 'chain a': ['1', '2'] }), objects({ 'chain a': ['2', '1'] })),
    ).toEqual([{ sign: '~', object: 'chain a', text: 'the same rules in another order' }]);
  });

  test('a rule is as often there as it is written', () => {
    expect(printedDifferences(objects({ 'chain a': ['1'] }), objects({ 'chain a': ['1', '1'] }))).toEqual([
      { sign: '+', object: 'chain a', text: '1' },
    ]);
  });

  test('an empty chain is an object too', () => {
    expect(printedDifferences(objects({ 'chain a': [] }), objects({}))).toEqual([
      { sign: '-', object: 'chain a', text: '' },
    ]);
  });
});
