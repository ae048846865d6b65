/** What changes in the rules when the node or the settings are different. */
import { describe, expect, test } from 'vitest';
import { ip } from '../../../plan/given.ts';
import { chainName } from '../compiled.ts';
import { type GoldenOptions, restoreText, rulesByChain } from './goldenCluster.ts';

const BASE = flat({});

function flat(options: GoldenOptions): ReadonlySet<string> {
  const rules = rulesByChain(restoreText(options));
  return new Set([...rules].flatMap(([chain, list]) => list.map((rule) => `${chain} ${rule}`)));
}

/** `- rule` was there without these options, `+ rule` is there with them. */
function difference(options: GoldenOptions, base: ReadonlySet<string> = BASE): readonly string[] {
  const now = flat(options);
  return [
    ...[...base].filter((rule) => !now.has(rule)).map((rule) => `- ${rule}`),
    ...[...now].filter((rule) => !base.has(rule)).map((rule) => `+ ${rule}`),
  ];
}

/** The difference in which every rule that has one text has another instead. */
function replacing(from: string, to: string, base: ReadonlySet<string> = BASE): readonly string[] {
  const gone = [...base].filter((rule) => rule.includes(from));
  return [...gone.map((rule) => `- ${rule}`), ...gone.map((rule) => `+ ${rule.replace(from, to)}`)];
}

const TAIL =
  '-m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain"';

describe('who is masqueraded', () => {
  test('everybody who dials a cluster IP', () => {
    expect(difference({ view: { masqueradeAll: true } })).toEqual(replacing(' ! -s 10.244.0.0/16', ''));
  });

  test('nobody, where pods cannot be told apart; and no short way for pods', () => {
    const changes = difference({ view: { localDetector: { kind: 'none' } } });
    expect(changes.every((line) => line.startsWith('- '))).toBe(true);
    expect(changes.filter((line) => line.includes('! -s'))).toHaveLength(8);
    expect(changes.filter((line) => line.includes('"pod traffic for'))).toHaveLength(2);
    expect(changes).toHaveLength(10);
  });

  test.each([
    ['a bridge', { kind: 'interface', name: 'cni0' }, '-i cni0'],
    ['a prefix of names', { kind: 'interfacePrefix', prefix: 'veth' }, '-i veth+'],
  ] as const)('by %s', (_, localDetector, text) => {
    expect(difference({ view: { localDetector } })).toEqual(replacing('-s 10.244.0.0/16', text));
  });

  test.each([
    [0x1, '0x00000001'],
    [0x8000_0000, '0x80000000'],
  ])('by another bit: %s', (masqueradeMark, text) => {
    const changes = difference({ options: { masqueradeMark } });
    expect(changes).toContain(`+ nat KUBE-MARK-MASQ -j MARK --or-mark ${text}`);
    expect(changes).toContain(`+ nat KUBE-POSTROUTING -j MARK --xor-mark ${text}`);
    expect(changes).toHaveLength(8);
  });

  test('by an old iptables', () => {
    expect(difference({ options: { randomFully: false } })).toEqual(replacing(' --random-fully', ''));
  });
});

describe('where node ports answer', () => {
  test('not on localhost: no martian rule either', () => {
    expect(difference({ view: { nodePorts: { ranges: 'all', loopback: false } } })).toEqual([
      '- filter KUBE-FIREWALL -m comment --comment "block incoming localnet connections" -d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP',
      `- nat KUBE-SERVICES ${TAIL} -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS`,
      `+ nat KUBE-SERVICES ${TAIL} -m addrtype --dst-type LOCAL ! -d 127.0.0.0/8 -j KUBE-NODEPORTS`,
    ]);
  });

  test('on some addresses', () => {
    const nodePortIps = [ip('192.0.2.10'), ip('192.0.2.11')];
    expect(difference({ options: { nodePortIps } })).toEqual([
      `- nat KUBE-SERVICES ${TAIL} -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS`,
      `+ nat KUBE-SERVICES ${TAIL} -d 192.0.2.10 -j KUBE-NODEPORTS`,
      `+ nat KUBE-SERVICES ${TAIL} -d 192.0.2.11 -j KUBE-NODEPORTS`,
    ]);
  });

  test('nowhere', () => {
    expect(difference({ options: { nodePortIps: [] } })).toEqual([
      `- nat KUBE-SERVICES ${TAIL} -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS`,
    ]);
  });
});

describe('packets that conntrack calls invalid', () => {
  test('pass where conntrack is liberal', () => {
    expect(difference({ options: { dropInvalid: false } })).toEqual([
      '- filter KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP',
    ]);
  });

  test('are counted where there is a counter', () => {
    const nfacct = { invalidDropped: true, localhostNodePorts: false };
    expect(difference({ options: { nfacct } })).toEqual([
      '- filter KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP',
      '+ filter KUBE-FORWARD -m conntrack --ctstate INVALID -m nfacct --nfacct-name ct_state_invalid_dropped_pkts -j DROP',
    ]);
  });
});

describe('node ports on localhost', () => {
  const nfacct = { invalidDropped: false, localhostNodePorts: true };
  const world = 'a/b 10.96.0.1 80@30080\n a/b-1 of b 80 | 10.244.0.1';

  test('are counted where there is a counter, before the rule for all', () => {
    const rules = rulesByChain(restoreText({ world, options: { nfacct } }));
    expect(rules.get('nat KUBE-NODEPORTS')).toEqual([
      `-m comment --comment a/b -m tcp -p tcp -d 127.0.0.0/8 --dport 30080 -m nfacct --nfacct-name localhost_nps_accepted_pkts -j ${chainName('EXT', 'a/b')}`,
      `-m comment --comment a/b -m tcp -p tcp --dport 30080 -j ${chainName('EXT', 'a/b')}`,
    ]);
  });

  test('are not counted where they do not answer', () => {
    const view = { nodePorts: { ranges: 'all', loopback: false } } as const;
    expect(restoreText({ world, view, options: { nfacct } })).not.toContain('nfacct');
  });
});

describe('a large cluster', () => {
  test('endpoints are not named any more, services are', () => {
    const text = restoreText({ options: { endpointComments: false } });
    expect(text).not.toContain(' -> ');
    const rules = rulesByChain(text);
    const endpoint = chainName('SEP', 'shop/api', '10.244.0.10:8080');
    expect(rules.get(`nat ${endpoint}`)).toEqual([
      '-s 10.244.0.10 -j KUBE-MARK-MASQ',
      '-m tcp -p tcp -j DNAT --to-destination 10.244.0.10:8080',
    ]);
    expect(rules.get(`nat ${chainName('SVC', 'shop/old', '', 'sctp')}`)).toEqual([
      '-m comment --comment "shop/old cluster IP" -m sctp -p sctp -d 10.96.8.9 --dport 9000 ! -s 10.244.0.0/16 -j KUBE-MARK-MASQ',
      `-j ${chainName('SEP', 'shop/old', '10.244.1.50:9000', 'sctp')}`,
    ]);
  });
});

describe('layout classic', () => {
  const base = flat({ layout: 'classic' });

  test('without a CIDR, established connections are forwarded whoever has them', () => {
    const changes = difference({ layout: 'classic', view: { localDetector: { kind: 'none' } } }, base);
    const forward = changes.filter((line) => line.includes('filter KUBE-FORWARD'));
    expect(forward).toEqual([
      '- filter KUBE-FORWARD -s 10.244.0.0/16 -m comment --comment "kubernetes forwarding conntrack pod source rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
      '- filter KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack pod destination rule" -d 10.244.0.0/16 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
      '+ filter KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
    ]);
  });

  test('the two marks are never the same bit', () => {
    const rules = flat({ layout: 'classic', options: { masqueradeMark: 0x8000 } });
    expect(rules).toContain('nat KUBE-MARK-DROP -j MARK --or-mark 0x00004000');
    expect(rules).toContain(
      'filter KUBE-FIREWALL -m comment --comment "kubernetes firewall for dropping marked packets" -m mark --mark 0x00004000/0x00004000 -j DROP',
    );
  });
});
