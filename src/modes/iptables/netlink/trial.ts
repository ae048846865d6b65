/**
 * Whether rules that are written by netlink are those that this machine's `iptables-nft-restore` writes: every kind of rule
 * that a layout has, both ways, in two chains that nothing jumps to. The kernel's digests of both are compared.
 */
import { isJunctionError } from '../../../errors.ts';
import type { RulesChannel } from '../../../netlink/channel.ts';
import { getRules } from '../../../netlink/nftables/objects.ts';
import { WORDS_PER_RULE } from '../../../netlink/nftables/ruleReducer.ts';
import type { IptablesClient } from '../client.ts';
import { sampleRules } from '../prerequisites.ts';
import { piece, printStep, type Step } from '../rules/edit.ts';
import type { Layout } from '../rules/fragment.ts';
import { SENT_TRIAL_CHAIN, TRIAL_CHAIN } from '../rules/names.ts';
import { printRule } from '../rules/print.ts';
import { type Match, type Rule, type Table, TABLES } from '../rules/rule.ts';
import { dialectOf } from './dialect.ts';
import { RuleEncoder } from './encodeRule.ts';
import { NetlinkWriter } from './writer.ts';

type Client = Pick<IptablesClient, 'family' | 'features' | 'restore' | 'version'>;

const CHAINS = [TRIAL_CHAIN, SENT_TRIAL_CHAIN];
const DELETIONS = 3;
/** What a trial would have to make first, or would load a module for that changes what packets pass. */
const OMITTED: ReadonlySet<Match['kind']> = new Set(['nfacct', 'set', 'physdevIsIn', 'virtualServer']);

/** Returns the first difference, for people; `undefined` where there is none. */
export async function findDifference(
  client: Client,
  channel: RulesChannel,
  layout: Layout,
): Promise<string | undefined> {
  const { family, version } = client;
  const encoder = new RuleEncoder({ family, dialect: dialectOf(version) });
  const writer = new NetlinkWriter(family, channel, encoder);
  for (const table of TABLES) {
    // What cannot be encoded is written by iptables-restore in any case.
    const rules = sampleRules(table, client, { layout, localhostNodePorts: true }).filter(
      (rule) => !rule.matches.some(({ kind }) => OMITTED.has(kind)) && encoder.encode(rule),
    );
    try {
      const accepted = await restoreAccepted(client, table, rules);
      await writer.commit(writeStep(table, SENT_TRIAL_CHAIN, accepted));
      const difference = await compare(channel, family === 'IPv4' ? 'ip' : 'ip6', table, accepted);
      if (difference !== undefined) return difference;
    } finally {
      await deleteChains(writer, table);
    }
  }
  return undefined;
}

/** What stays all the same is deleted by the next full sync, and by `junction cleanup`. */
async function deleteChains(writer: NetlinkWriter, table: Table): Promise<void> {
  const step: Step = { table, pieces: CHAINS.map((chain) => piece(undefined, { deletes: [chain] })) };
  for (let tries = 1; tries <= DELETIONS; tries++)
    try {
      await writer.commit(step);
      return;
    } catch (error) {
      if (!isJunctionError(error)) throw error;
    }
}

/** A kernel that lacks a match refuses rules with it: those are left out. */
async function restoreAccepted(
  client: Client,
  table: Table,
  rules: readonly Rule[],
): Promise<readonly Rule[]> {
  if (await isRestored(client, table, rules)) return rules;
  const accepted: Rule[] = [];
  for (const rule of rules) if (await isRestored(client, table, [rule])) accepted.push(rule);
  await isRestored(client, table, accepted);
  return accepted;
}

async function isRestored(client: Client, table: Table, rules: readonly Rule[]): Promise<boolean> {
  try {
    await client.restore(table, printStep(writeStep(table, TRIAL_CHAIN, rules)));
    return true;
  } catch (error) {
    if (isJunctionError(error, 'IPTABLES_RESTORE_FAILED')) return false;
    throw error;
  }
}

function writeStep(table: Table, name: string, rules: readonly Rule[]): Step {
  return { table, pieces: [piece(undefined, { writes: [{ name, rules }] })] };
}

async function compare(
  channel: RulesChannel,
  family: 'ip' | 'ip6',
  table: Table,
  rules: readonly Rule[],
): Promise<string | undefined> {
  const replies = await channel.digestRules(CHAINS.map((chain) => getRules({ family, table }, chain)));
  const [restored, sent] = replies.map((reply) =>
    reply.kind === 'answered' ? digestsOf(reply.words) : [reply.name],
  );
  const index = rules.findIndex((_, at) => restored?.[at] === undefined || restored[at] !== sent?.[at]);
  const rule = rules[index];
  return rule && `iptables-restore writes "${printRule(rule)}" in another way`;
}

function digestsOf(words: Uint32Array): readonly string[] {
  const digests: string[] = [];
  for (let at = 0; at < words.length; at += WORDS_PER_RULE) digests.push(`${words[at]} ${words[at + 1]}`);
  return digests;
}
