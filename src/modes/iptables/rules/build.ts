/** The words in which layouts write rules. */
import type { Cidr, Family, Ip } from '../../../model/ip.ts';
import { parseCidr } from '../../../model/ip.ts';
import type { Protocol } from '../../../model/objects.ts';
import type { LocalTrafficDetector } from '../../../plan/types.ts';
import type { CompileOptions, SharedRule } from './fragment.ts';
import { CHAINS, ruleProtocol } from './names.ts';
import type { ConntrackState, Match, Rule, Target } from './rule.ts';

export function rule(matches: readonly Match[], target?: Target): Rule {
  return { matches, target };
}

export const comment = (text: string): Match => ({ kind: 'comment', text });
export const protocol = (name: Protocol): Match => ({ kind: 'protocol', protocol: ruleProtocol(name) });
export const source = (cidr: Cidr | Ip): Match => ({ kind: 'source', cidr, not: false });
export const notSource = (cidr: Cidr | Ip): Match => ({ kind: 'source', cidr, not: true });
export const destination = (cidr: Cidr | Ip): Match => ({ kind: 'destination', cidr, not: false });
export const notDestination = (cidr: Cidr | Ip): Match => ({ kind: 'destination', cidr, not: true });
export const destinationPort = (port: number): Match => ({ kind: 'destinationPort', port });
export const state = (...states: ConntrackState[]): Match => ({ kind: 'conntrackState', states, not: false });
export const notState = (...states: ConntrackState[]): Match => ({
  kind: 'conntrackState',
  states,
  not: true,
});
export const marked = (mark: number): Match => ({ kind: 'mark', value: mark, mask: mark, not: false });
export const notMarked = (mark: number): Match => ({ kind: 'mark', value: mark, mask: mark, not: true });

export const fromLocal: Match = { kind: 'addressType', side: 'src', type: 'LOCAL', not: false };
export const notFromLocal: Match = { kind: 'addressType', side: 'src', type: 'LOCAL', not: true };
export const toLocal: Match = { kind: 'addressType', side: 'dst', type: 'LOCAL', not: false };

export const accept: Target = { kind: 'accept' };
export const drop: Target = { kind: 'drop' };
export const reject: Target = { kind: 'reject' };
export const returnToCaller: Target = { kind: 'return' };
export const jump = (chain: string): Target => ({ kind: 'jump', chain });
export const toMasquerade: Target = jump(CHAINS.markMasquerade);

/** `-m comment --comment … -m tcp -p tcp -d ADDRESS --dport PORT`: how a rule names an address that clients dial. */
export function dialled(text: string, name: Protocol, address: Ip, port: number): readonly Match[] {
  return [comment(text), protocol(name), destination(address), destinationPort(port)];
}

/** Matches packets of pods, or of everybody else; `undefined` where pods cannot be told apart. */
export function podMatch(detector: LocalTrafficDetector, which: 'pods' | 'others'): Match | undefined {
  const not = which === 'others';
  switch (detector.kind) {
    case 'none':
      return undefined;
    case 'cidr':
      return { kind: 'source', cidr: detector.cidr, not };
    case 'interface':
      return { kind: 'inInterface', name: detector.name, not };
    case 'interfacePrefix':
      return { kind: 'inInterface', name: `${detector.prefix}+`, not };
  }
}

export function loopbackRange(family: Family): Cidr {
  return family === 'IPv4' ? LOOPBACK_V4 : LOOPBACK_V6;
}

const LOOPBACK_V4 = knownCidr('127.0.0.0/8');
const LOOPBACK_V6 = knownCidr('::1/128');

function knownCidr(text: string): Cidr {
  const cidr = parseCidr(text);
  if (cidr === undefined) throw new Error(`not a CIDR: ${text}`);
  return cidr;
}

const NODE_PORT_TAIL = 'kubernetes service nodeports; NOTE: this must be the last rule in this chain';

/** The way from KUBE-SERVICES to the node ports: the last rule, or rules, of that chain. */
export function nodePortTail(options: CompileOptions): readonly Rule[] {
  const { nodePortIps, view, family } = options;
  const toNodePorts = jump(CHAINS.nodePorts);
  if (nodePortIps !== 'all') {
    return nodePortIps.map((ip) => rule([comment(NODE_PORT_TAIL), destination(ip)], toNodePorts));
  }
  const notLoopback = view.nodePorts.loopback ? [] : [notDestination(loopbackRange(family))];
  return [rule([comment(NODE_PORT_TAIL), toLocal, ...notLoopback], toNodePorts)];
}

/** route_localnet=1 would let neighbours reach what listens on 127.0.0.1 (CVE-2020-8558). */
export function martianRule(): SharedRule {
  const loopback = loopbackRange('IPv4');
  return {
    table: 'filter',
    chain: CHAINS.firewall,
    rule: rule(
      [
        comment('block incoming localnet connections'),
        destination(loopback),
        notSource(loopback),
        notState('RELATED', 'ESTABLISHED', 'DNAT'),
      ],
      drop,
    ),
  };
}
