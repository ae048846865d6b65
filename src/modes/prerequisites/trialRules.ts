/** One rule for each match and target that a mode writes, in the words in which it writes them. Pure. */
import { match, rule, target } from '../iptables/rules/layouts/common.ts';
import type { Match, Rule, Table, Target } from '../iptables/rules/rule.ts';
import { type Family, type Ip, parseIp } from '../../model/ip.ts';
import * as extensions from './extensions.ts';
import type { Extension } from './extensions.ts';

export const TRIAL_CHAIN = 'KUBE-JUNCTION-TRIAL';
export const TRIAL_COUNTER = 'junction_trial';
export const TRIAL_SETS: Readonly<Record<Family, string>> = {
  IPv4: 'KUBE-JUNCTION-TRIAL',
  IPv6: 'KUBE-6-JUNCTION-TRIAL',
};

export interface TrialRule {
  readonly extension: Extension;
  readonly table: Table;
  readonly rule: Rule;
}

/** What the rules of one family lean on. */
export interface TrialSupport {
  readonly family: Family;
  readonly randomFully: boolean;
  /** The kernel has counters, and `TRIAL_COUNTER` among them. */
  readonly counter: boolean;
  /** There is a set of the name in `TRIAL_SETS`. */
  readonly set: boolean;
  /** Its first use loads br_netfilter, after which bridged packets pass through iptables: not for a trial to do. */
  readonly physdev: boolean;
}

const MARK = 0x4000;
const CLIENT_SECONDS = 10_800;
const PORT = 65_535;
/** Reserved for documentation: nobody has them. */
const NOBODY: Readonly<Record<Family, Ip>> = { IPv4: known('198.51.100.0'), IPv6: known('2001:db8::') };

export function iptablesTrialRules(
  support: TrialSupport,
  layout: 'current' | 'classic',
): readonly TrialRule[] {
  const { family } = support;
  const to = family === 'IPv4' ? `${NOBODY[family]}:${PORT}` : `[${NOBODY[family]}]:${PORT}`;
  return [
    ...commonRules(support),
    nat(extensions.STATISTIC, [{ kind: 'statistic', probability: '0.5000000000' }]),
    nat(extensions.RECENT, [{ kind: 'recentSet', name: TRIAL_CHAIN }]),
    nat(extensions.RECENT, [{ kind: 'recentCheck', name: TRIAL_CHAIN, seconds: CLIENT_SECONDS, reap: true }]),
    nat(extensions.TCP, [match.protocol('TCP'), match.destinationPort(PORT)]),
    nat(extensions.UDP, [match.protocol('UDP'), match.destinationPort(PORT)]),
    nat(extensions.SCTP, [match.protocol('SCTP'), match.destinationPort(PORT)]),
    nat(extensions.DNAT, [match.protocol('TCP')], { kind: 'dnat', to }),
    ...(layout === 'classic' && support.physdev ? [physdevRule(extensions.PHYSDEV)] : []),
    ...(layout === 'current' && support.counter ? [counterRule] : []),
  ];
}

export function ipvsTrialRules(support: TrialSupport): readonly TrialRule[] {
  const { family } = support;
  const set: Match = { kind: 'set', name: TRIAL_SETS[family], sides: ['dst'] };
  const server: Match = { kind: 'virtualServer', protocol: 'tcp', address: NOBODY[family], port: PORT };
  return [
    ...commonRules(support),
    ...(support.set ? [nat(extensions.SET, [set]), filter(extensions.SET, [set])] : []),
    ...(support.physdev ? [physdevRule(extensions.PHYSDEV_FOR_ALL)] : []),
    filter(extensions.VIRTUAL_SERVER, [server]),
  ];
}

function commonRules({ randomFully }: TrialSupport): readonly TrialRule[] {
  return [
    nat(extensions.COMMENT, [match.comment('a trial of Junction')]),
    nat(extensions.ADDRESS_TYPE, [match.toLocal]),
    nat(extensions.MARK_MATCH, [match.marked(MARK)]),
    nat(extensions.MARK_TARGET, [], { kind: 'mark', operation: 'or', value: MARK }),
    nat(extensions.MASQUERADE, [], { kind: 'masquerade', randomFully }),
    filter(extensions.COMMENT, [match.comment('a trial of Junction')]),
    filter(extensions.ADDRESS_TYPE, [match.toLocal]),
    filter(extensions.CONNTRACK, [match.state('RELATED', 'ESTABLISHED')]),
    filter(extensions.MARK_MATCH, [match.marked(MARK)]),
    filter(extensions.REJECT, [], target.reject),
  ];
}

const counterRule = filter(extensions.NFACCT, [{ kind: 'nfacct', name: TRIAL_COUNTER }]);

function physdevRule(extension: Extension): TrialRule {
  return nat(extension, [{ kind: 'physdevIsIn', not: true }]);
}

function nat(extension: Extension, matches: readonly Match[], to: Target = target.accept): TrialRule {
  return { extension, table: 'nat', rule: rule(matches, to) };
}

function filter(extension: Extension, matches: readonly Match[], to: Target = target.accept): TrialRule {
  return { extension, table: 'filter', rule: rule(matches, to) };
}

function known(text: string): Ip {
  const ip = parseIp(text);
  if (ip === undefined) throw new Error(`not an address: ${text}`);
  return ip;
}
