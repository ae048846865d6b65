/**
 * Rules offered to the kernel in a chain that nothing jumps to.
 *
 * With the nft variant they are never there, not for a moment: the transaction ends by deleting the chain with the rules
 * in it, so that the kernel looks at every rule and then refuses it all, naming each line that it would not have had.
 * (With the chain emptied first the kernel would not even look: it accepts rules of matches that it does not have.) The
 * legacy variant, and an nft variant so old that it does not name lines, writes the chain and takes it out again.
 */
import { isJunctionError, type JunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import type { TrialClient } from '../prerequisites/machine.ts';
import { kernelPiece } from '../prerequisites/pieces.ts';
import { samplePlan } from '../prerequisites/sample.ts';
import { compileAll, type CompileOptions, type Layout } from './rules/fragment.ts';
import { rule } from './rules/layouts/common.ts';
import { TRIAL_CHAIN } from './rules/names.ts';
import { appendLine, chainLine, printRule } from './rules/print.ts';
import type { Match, Rule, Table, Target } from './rules/rule.ts';

type RuleTrial =
  /** Reasons by rule; none where all were accepted. */
  | { readonly state: 'tried'; readonly refused: ReadonlyMap<Rule, string> }
  | { readonly state: 'noTable'; readonly reason: string }
  /** For a reason that has nothing to do with the rules: the lock, a missing program. */
  | { readonly state: 'failed'; readonly error: JunctionError };

type Client = Pick<TrialClient, 'variant' | 'restore'>;

type Attempt =
  | Exclude<RuleTrial, { state: 'failed' }>
  /** One of them at least, and the text does not say which. */
  | { readonly state: 'refused'; readonly reason: string };

/** All at once; in halves only to find out which. */
export async function tryRules(client: Client, table: Table, rules: readonly Rule[]): Promise<RuleTrial> {
  try {
    const all = await attempt(client, table, rules);
    if (all.state !== 'refused') return all;
    const none = await attempt(client, table, []);
    if (none.state === 'refused') return { state: 'noTable', reason: none.reason };
    return { state: 'tried', refused: new Map(await bisect(client, table, rules, all.reason)) };
  } catch (error) {
    if (isJunctionError(error)) return { state: 'failed', error };
    throw error;
  }
}

/** Of rules that are refused together, those that are to blame. */
async function bisect(
  client: Client,
  table: Table,
  rules: readonly Rule[],
  reason: string,
): Promise<readonly (readonly [Rule, string])[]> {
  if (rules.length < 2) return rules.map((only) => [only, reason]);
  const middle = Math.ceil(rules.length / 2);
  const refused: (readonly [Rule, string])[] = [];
  for (const half of [rules.slice(0, middle), rules.slice(middle)]) {
    const tried = await attempt(client, table, half);
    if (tried.state === 'tried') refused.push(...tried.refused);
    else refused.push(...(await bisect(client, table, half, tried.reason)));
  }
  return refused;
}

async function attempt(client: Client, table: Table, rules: readonly Rule[]): Promise<Attempt> {
  if (client.variant === 'nft' && rules.length > 0) {
    const refusal = await restore(client, table, [...dryHead(table), ...rules.map(trialLine), REMOVAL]);
    // A kernel that deletes a chain with the rules in it has looked at them all the same.
    if (refusal === undefined) return ACCEPTED;
    const read = readRefusals(refusal, table, rules);
    if (read) return read;
  }
  return writeAndRemove(client, table, rules);
}

const ACCEPTED: Attempt = { state: 'tried', refused: new Map() };

/** `undefined` where the text does not name lines. */
function readRefusals(error: JunctionError, table: Table, rules: readonly Rule[]): Attempt | undefined {
  const first = dryHead(table).length + 2;
  const complaints = [...(error.detail ?? '').matchAll(/^line (\d+): \w+ failed \((.*?)\)/gm)];
  // Backwards, for of several complaints about a line the first is the cause of the others.
  const lines = new Map(
    complaints.toReversed().map(([, line, reason]) => [Number(line) - first, inWords(reason ?? '')]),
  );
  // The deletion fails as soon as one rule is taken; where it did not and a rule is not named, this is about something else.
  if (!lines.delete(rules.length) && !rules.every((_, index) => lines.has(index))) return undefined;
  const [earliest] = [...lines].toSorted(([a], [b]) => a - b);
  if (earliest && earliest[0] < 0) return { state: 'noTable', reason: earliest[1] };
  const refused = rules.flatMap((rule, index) => {
    const reason = lines.get(index);
    return reason === undefined ? [] : [[rule, reason] as const];
  });
  return { state: 'tried', refused: new Map(refused) };
}

async function writeAndRemove(client: Client, table: Table, rules: readonly Rule[]): Promise<Attempt> {
  try {
    const refusal = await restore(client, table, [HEAD, ...rules.map(trialLine)]);
    return refusal === undefined ? ACCEPTED : { state: 'refused', reason: reasonOf(refusal) };
  } finally {
    // Also what a run that was killed in between has left.
    await restore(client, table, [HEAD, REMOVAL]);
  }
}

/** Makes the chain, or empties it. */
const HEAD = chainLine(TRIAL_CHAIN);
const REMOVAL = `-X ${TRIAL_CHAIN}`;

function trialLine(rule: Rule): string {
  return appendLine(TRIAL_CHAIN, rule);
}

/** In the nat table with one of the kernel's own chains, which need a module that a chain of ours does not. */
function dryHead(table: Table): readonly string[] {
  return table === 'nat' ? [chainLine('POSTROUTING'), HEAD] : [HEAD];
}

async function restore(
  client: Client,
  table: Table,
  lines: readonly string[],
): Promise<JunctionError | undefined> {
  try {
    await client.restore(table, [`*${table}`, ...lines, 'COMMIT', ''].join('\n'));
    return undefined;
  } catch (error) {
    if (isJunctionError(error, 'IPTABLES_RESTORE_FAILED')) return error;
    throw error;
  }
}

/** What the kernel calls a missing file is a part that it does not have. */
function inWords(reason: string): string {
  return reason === 'No such file or directory'
    ? `the kernel does not have it ("${reason}")`
    : `the kernel refuses it ("${reason}")`;
}

/** The line that says most: that a library or a module is missing, rather than that a line failed. */
function reasonOf({ detail, message }: JunctionError): string {
  const lines = (detail ?? message).split('\n');
  const best = lines.find((line) =>
    /missing kernel module|Couldn't load|initialize|option|Could not/.test(line),
  );
  const program = /^\S*restore v\S+ \(\w+\): /;
  return (best ?? message).replace(program, '').trim();
}

/* The rules that a layout writes for the sample services, and the matches and targets that they consist of. */

/**
 * Matches (`-m recent`) and targets (`-j DNAT`) by their kind in our rules, and the kernel module that brings each. What
 * every kernel and every program has is not listed.
 */
export const EXTENSIONS = {
  comment: kernelPiece('match comment', 'xt_comment'),
  addressType: kernelPiece('match addrtype', 'xt_addrtype'),
  conntrackState: kernelPiece('match conntrack', 'xt_conntrack'),
  mark: kernelPiece('match mark', 'xt_mark'),
  'to mark': kernelPiece('target MARK', 'xt_mark'),
  /** xt_MASQUERADE since kernel 5.2; before, one for each family, for which kernels since then have an alias. */
  'to masquerade': kernelPiece('target MASQUERADE', 'ipt_MASQUERADE'),
  'to reject': kernelPiece('target REJECT', 'ipt_REJECT'),
  statistic: kernelPiece('match statistic', 'xt_statistic'),
  recent: kernelPiece('match recent', 'xt_recent', 'for Services with sessionAffinity: ClientIP'),
  tcp: kernelPiece('match tcp', 'xt_tcpudp'),
  udp: kernelPiece('match udp', 'xt_tcpudp'),
  sctp: kernelPiece('match sctp', 'xt_sctp', 'for Services of protocol SCTP'),
  'to dnat': kernelPiece('target DNAT', 'xt_nat'),
  set: kernelPiece('match set', 'xt_set'),
  physdevIsIn: kernelPiece('match physdev', 'xt_physdev', 'for Services with external IPs'),
  virtualServer: kernelPiece(
    'match ipvs',
    'xt_ipvs',
    'for load balancers with source ranges that leave the node out',
  ),
  /** Once the kernel has counters, rules count into them: then the match must be there too. */
  nfacct: kernelPiece('match nfacct', 'xt_nfacct'),
} as const;

type ExtensionKey = keyof typeof EXTENSIONS;
export const EXTENSION_KEYS = Object.keys(EXTENSIONS) as readonly ExtensionKey[];

export const TRIAL_COUNTER = 'junction_trial';
export const TRIAL_SETS: Readonly<Record<Family, string>> = {
  IPv4: TRIAL_CHAIN,
  IPv6: 'KUBE-6-JUNCTION-TRIAL',
};
const MARK = 0x4000;
const ACCEPT: Target = { kind: 'accept' };

interface SampleOptions extends Pick<CompileOptions, 'family' | 'randomFully'> {
  readonly layout: Layout;
  readonly localhostNodePorts: boolean;
  readonly filledSets: readonly string[];
  /** What the kernel has no counter or set for, or what must not be tried, is left out of the rules. */
  readonly omitted: ReadonlySet<Match['kind']>;
}

/** Each once. No rule jumps, and none names a chain, set or counter but those of the trial. */
export function sampleRules(table: Table, options: SampleOptions): readonly Rule[] {
  const { layout, family, omitted } = options;
  const plan = samplePlan(family, options.localhostNodePorts);
  const hasCounters = !omitted.has('nfacct');
  const compile: CompileOptions = {
    ...options,
    view: plan.view,
    nodePortIps: 'all',
    masqueradeMark: MARK,
    dropInvalid: true,
    nfacct: { invalidDropped: hasCounters, localhostNodePorts: hasCounters },
    endpointComments: true,
  };
  const { chains, tail, foreign } = layout.base(compile);
  const fragments = [...compileAll(layout, plan.servicePorts, compile)].map(([, fragment]) => fragment);
  const shared = [...layout.jumps, ...tail, ...foreign, ...fragments.flatMap((each) => each.shared)];
  const rules = [
    ...[...chains, ...fragments.flatMap((each) => each.chains)]
      .filter((chain) => chain.table === table)
      .flatMap((chain) => chain.rules),
    ...shared.filter((each) => each.table === table).map((each) => each.rule),
  ].map((each) => forTrial(each, family, omitted));
  return [...new Map(rules.map((each) => [printRule(each), each])).values()];
}

function forTrial({ matches, target }: Rule, family: Family, omitted: ReadonlySet<Match['kind']>): Rule {
  const kept = matches
    .filter(({ kind }) => !omitted.has(kind))
    .map((match): Match => {
      if (match.kind === 'recentSet' || match.kind === 'recentCheck') return { ...match, name: TRIAL_CHAIN };
      if (match.kind === 'nfacct') return { ...match, name: TRIAL_COUNTER };
      return match.kind === 'set' ? { ...match, name: TRIAL_SETS[family] } : match;
    });
  return rule(kept, target?.kind === 'jump' ? ACCEPT : target);
}

export interface TriedRules {
  /** Matches and targets of the rules. */
  readonly extensions: readonly ExtensionKey[];
  readonly trial: RuleTrial;
  /** Reasons by what is refused; `undefined`: a rule whose parts the kernel accepts, each by itself. */
  readonly refusals: ReadonlyMap<ExtensionKey | undefined, string>;
}

/** Offers the parts of refused rules one by one. */
export async function tryExtensions(
  client: Client,
  table: Table,
  rules: readonly Rule[],
): Promise<TriedRules> {
  const extensions = [...partsOf(rules).keys()];
  const refusals = new Map<ExtensionKey | undefined, string>();
  const whole = await tryRules(client, table, rules);
  if (whole.state !== 'tried' || whole.refused.size === 0) return { extensions, trial: whole, refusals };
  const parts = partsOf(whole.refused.keys());
  const trial = await tryRules(client, table, [...parts.values()]);
  if (trial.state !== 'tried') return { extensions, trial, refusals };
  for (const [key, part] of parts) {
    const reason = trial.refused.get(part);
    if (reason !== undefined) refusals.set(key, reason);
  }
  for (const [each, reason] of whole.refused)
    if (![...partsOf([each]).keys()].some((key) => refusals.has(key)))
      refusals.set(undefined, `${printRule(each)}: ${reason}`);
  return { extensions, trial, refusals };
}

/** The matches and targets of these rules, in the order of the table; each with the first rule that has it, cut down to it. */
function partsOf(rules: Iterable<Rule>): ReadonlyMap<ExtensionKey, Rule> {
  const all = [...rules].flatMap((each) => [...cutsOf(each)]);
  const first = new Map(all.toReversed());
  return new Map(
    EXTENSION_KEYS.flatMap((key) => {
      const part = first.get(key);
      return part ? [[key, part]] : [];
    }),
  );
}

/** What a part cannot be without stays with it. */
function* cutsOf({ matches, target }: Rule): Generator<readonly [key: string, part: Rule]> {
  const bare: Match[] = [];
  for (const match of matches) {
    if (match.kind !== 'protocol') yield [match.kind.replace(/^recent.*/, 'recent'), rule([match], ACCEPT)];
    else {
      const ports = matches.filter(({ kind }) => kind === 'destinationPort');
      if (!match.bare) yield [match.protocol, rule([match, ...ports], ACCEPT)];
      bare.push({ ...match, bare: true });
    }
  }
  if (target) yield [`to ${target.kind}`, rule(target.kind === 'dnat' ? bare : [], target)];
}
