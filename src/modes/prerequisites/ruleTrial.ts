/**
 * Rules put to the test in a chain that nothing jumps to.
 *
 * With the nft variant they are never there, not for a moment: the transaction ends by deleting the chain with the rules
 * in it, so that the kernel looks at every rule and then refuses it all, naming each line that it would not have had.
 * (With the chain emptied first the kernel would not even look: it accepts rules of matches that it does not have.) The
 * legacy variant, and an nft variant so old that it does not name lines, writes the chain and takes it out again.
 */
import { appendLine, chainLine } from '../iptables/rules/print.ts';
import type { Rule, Table } from '../iptables/rules/rule.ts';
import { isJunctionError, type JunctionError } from '../../errors.ts';
import type { TrialDoor } from './machine.ts';
import { TRIAL_CHAIN } from './trialRules.ts';

export type TableTrial =
  /** Reasons by rule; none where all were accepted. */
  | { readonly state: 'tried'; readonly refused: ReadonlyMap<Rule, string> }
  | { readonly state: 'noTable'; readonly reason: string }
  /** For a reason that has nothing to do with the rules: the lock, a missing program. */
  | { readonly state: 'failed'; readonly error: JunctionError };

export type TableDoor = Pick<TrialDoor, 'variant' | 'restore'>;

type Attempt =
  | { readonly state: 'accepted' }
  | { readonly state: 'refused'; readonly reasons: ReadonlyMap<Rule, string> }
  | { readonly state: 'noTable'; readonly reason: string }
  /** Something in it was, nobody says what. */
  | { readonly state: 'refusedSomehow'; readonly reason: string };

/** All at once; one by one only to find out which. */
export async function tryRules(door: TableDoor, table: Table, rules: readonly Rule[]): Promise<TableTrial> {
  try {
    const all = await attempt(door, table, rules);
    if (all.state === 'accepted') return { state: 'tried', refused: new Map() };
    if (all.state === 'refused') return { state: 'tried', refused: all.reasons };
    if (all.state === 'noTable') return all;
    const none = await attempt(door, table, []);
    if (none.state === 'refusedSomehow') return { state: 'noTable', reason: none.reason };
    return { state: 'tried', refused: await refusedOnes(door, table, rules) };
  } catch (error) {
    if (isJunctionError(error)) return { state: 'failed', error };
    throw error;
  }
}

async function refusedOnes(
  door: TableDoor,
  table: Table,
  rules: readonly Rule[],
): Promise<ReadonlyMap<Rule, string>> {
  const refused = new Map<Rule, string>();
  for (const rule of rules) {
    const one = await attempt(door, table, [rule]);
    if (one.state === 'refused') refused.set(rule, one.reasons.get(rule) ?? 'refused');
    if (one.state === 'refusedSomehow') refused.set(rule, one.reason);
  }
  return refused;
}

async function attempt(door: TableDoor, table: Table, rules: readonly Rule[]): Promise<Attempt> {
  if (door.variant === 'nft' && rules.length > 0) {
    const refusal = await restore(door, table, [
      ...dryHead(table),
      ...rules.map((rule) => appendLine(TRIAL_CHAIN, rule)),
      REMOVAL,
    ]);
    // A kernel that deletes a chain with the rules in it has looked at them all the same.
    if (refusal === undefined) return { state: 'accepted' };
    const read = readRefusals(refusal, table, rules);
    if (read) return read;
  }
  return writeAndRemove(door, table, rules);
}

/** `undefined` where the text does not name lines. */
function readRefusals(error: JunctionError, table: Table, rules: readonly Rule[]): Attempt | undefined {
  const first = dryHead(table).length + 1;
  const refused = [...(error.detail ?? '').matchAll(/^line (\d+): \w+ failed \((.*?)\)/gm)];
  // Backwards, for of several complaints about a line the first is the cause of the others.
  const lines = new Map(refused.toReversed().map(([, line, reason]) => [Number(line) - first, reason ?? '']));
  // The deletion fails in any case; without it, this is about something else.
  if (!lines.delete(rules.length)) return undefined;
  if (lines.size === 0) return { state: 'accepted' };
  const earliest = Math.min(...lines.keys());
  if (earliest < 0) return { state: 'noTable', reason: inWords(lines.get(earliest) ?? '') };
  const reasons = new Map<Rule, string>();
  for (const [index, rule] of rules.entries()) {
    const reason = lines.get(index);
    if (reason !== undefined) reasons.set(rule, inWords(reason));
  }
  return { state: 'refused', reasons };
}

async function writeAndRemove(door: TableDoor, table: Table, rules: readonly Rule[]): Promise<Attempt> {
  const lines = [...head(table), ...rules.map((rule) => appendLine(TRIAL_CHAIN, rule))];
  try {
    const refusal = await restore(door, table, lines);
    return refusal === undefined
      ? { state: 'accepted' }
      : { state: 'refusedSomehow', reason: reasonOf(refusal) };
  } finally {
    await remove(door, table);
  }
}

/** Also what a run that was killed in between has left. */
async function remove(door: TableDoor, table: Table): Promise<void> {
  await restore(door, table, [...head(table), REMOVAL]);
}

const REMOVAL = `-X ${TRIAL_CHAIN}`;

/** In the nat table with one of the kernel's own chains, which need a module that a chain of ours does not. */
function dryHead(table: Table): readonly string[] {
  return table === 'nat' ? [`*${table}`, chainLine('POSTROUTING'), chainLine(TRIAL_CHAIN)] : head(table);
}

/** Makes the chain, or empties it. */
function head(table: Table): readonly string[] {
  return [`*${table}`, chainLine(TRIAL_CHAIN)];
}

async function restore(
  door: TableDoor,
  table: Table,
  lines: readonly string[],
): Promise<JunctionError | undefined> {
  try {
    await door.restore(table, `${[...lines, 'COMMIT'].join('\n')}\n`);
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
  const told = lines.find((line) =>
    /missing kernel module|Couldn't load|initialize|option|Could not/.test(line),
  );
  const program = /^\S*restore v\S+ \(\w+\): /;
  return (told ?? message).replace(program, '').trim();
}
