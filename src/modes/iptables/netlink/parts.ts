/** What rules have in common, as bytes: made once, copied into each. */
import { PROTOCOL_NUMBERS } from '../../../netlink/inet.ts';
import type { Expression } from '../../../netlink/nftables/expressions.ts';
import { SCTP_PORT, XT_MATCHES, XT_TARGETS } from '../../../netlink/xtables.ts';
import type { Match } from '../rules/rule.ts';
import {
  comparison,
  expressionBytes,
  IPV4_PROTOCOL_OFFSET,
  REGISTER,
  structureTemplate,
  xtMatch,
  xtTarget,
} from './templates.ts';

/** NFTA_RULE_COMPAT, by which the kernel checks matches and targets that need a protocol. It is not shown. */
export interface RuleCompat {
  readonly protocol: number;
  readonly isInverted: boolean;
}

export type RuleProtocol = Extract<Match, { readonly kind: 'protocol' }>['protocol'];

export const COMPAT: Readonly<Record<RuleProtocol, RuleCompat>> = {
  tcp: { protocol: PROTOCOL_NUMBERS.TCP, isInverted: false },
  udp: { protocol: PROTOCOL_NUMBERS.UDP, isInverted: false },
  sctp: { protocol: PROTOCOL_NUMBERS.SCTP, isInverted: false },
};

export type OfProtocol = Readonly<Record<RuleProtocol, Uint8Array>>;

/** `-p` */
function protocolBytes(load: Expression): OfProtocol {
  const compared = (protocol: RuleProtocol): Uint8Array =>
    expressionBytes(load, comparison(Uint8Array.of(COMPAT[protocol].protocol)));
  return { tcp: compared('tcp'), udp: compared('udp'), sctp: compared('sctp') };
}

export const PROTOCOL_CHECKS = protocolBytes({ kind: 'meta', key: 'l4proto', into: REGISTER });
export const IPV4_HEADER_CHECKS = protocolBytes({
  kind: 'payload',
  into: REGISTER,
  base: 'network',
  offset: IPV4_PROTOCOL_OFFSET,
  bytes: 1,
});
/** `-m tcp` without an option. */
export const MODULES = {
  tcp: expressionBytes(xtMatch(XT_MATCHES.tcp, XT_MATCHES.tcp.encode({}))),
  udp: expressionBytes(xtMatch(XT_MATCHES.udp, XT_MATCHES.udp.encode({}))),
  sctp: expressionBytes(xtMatch(XT_MATCHES.sctp, XT_MATCHES.sctp.encode({}))),
};
/** Behind source ports, or in front of them. */
export const PORTS_AT = { tcp: 4, udp: 4, sctp: 0 } as const;
export const PORT_STRUCTURES = {
  tcp: structureTemplate(xtMatch(XT_MATCHES.tcp, XT_MATCHES.tcp.encode({})), XT_MATCHES.tcp.bytes),
  udp: structureTemplate(xtMatch(XT_MATCHES.udp, XT_MATCHES.udp.encode({})), XT_MATCHES.udp.bytes),
  sctp: structureTemplate(
    xtMatch(XT_MATCHES.sctp, XT_MATCHES.sctp.encode({ asked: SCTP_PORT })),
    XT_MATCHES.sctp.bytes,
  ),
};
export const COMMENT = structureTemplate(xtMatch(XT_MATCHES.comment, XT_MATCHES.comment.encode({})), 256);
export const STATISTIC = structureTemplate(
  xtMatch(XT_MATCHES.statistic, XT_MATCHES.statistic.encode({})),
  XT_MATCHES.statistic.bytes,
);
export const RECENT = structureTemplate(
  xtMatch(XT_MATCHES.recent, XT_MATCHES.recent.encode({})),
  XT_MATCHES.recent.bytes,
);
export const DNAT = structureTemplate(
  xtTarget(XT_TARGETS.DNAT, XT_TARGETS.DNAT.encode({})),
  XT_TARGETS.DNAT.bytes,
);
