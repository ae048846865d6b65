/** Which way rules are written: by netlink where that is known to leave the same tables, otherwise by iptables-restore. */
import type { ValidConfig } from '../../../config/effective.ts';
import { isJunctionError, JunctionError } from '../../../errors.ts';
import type { Log } from '../../../log/log.ts';
import type { RulesChannel } from '../../../netlink/channel.ts';
import type { IptablesClient } from '../client.ts';
import type { Layout } from '../rules/fragment.ts';
import { dialectOf } from './dialect.ts';
import { RuleEncoder } from './encodeRule.ts';
import { findDifference } from './trial.ts';
import { NetlinkWriter } from './writer.ts';

interface WriterOptions {
  readonly junction: Pick<ValidConfig['junction'], 'iptablesWriter'>;
  readonly layout: Layout;
  readonly channel: RulesChannel;
  readonly log: Pick<Log, 'info' | 'warn'>;
}

interface Choice {
  readonly isNetlink: boolean;
  readonly reason: string;
}

/** Throws where netlink is asked for by name and cannot be had. */
export async function chooseWriter(client: IptablesClient, options: WriterOptions): Promise<void> {
  const { junction, channel, log } = options;
  const { isNetlink, reason } = await choiceFor(client, options);
  if (!isNetlink && junction.iptablesWriter === 'netlink')
    throw new JunctionError(
      'IPTABLES_WRITER_UNUSABLE',
      `rules of ${client.family} cannot be written by netlink: ${reason}`,
    );
  if (isNetlink) {
    const { family, version } = client;
    const encoder = new RuleEncoder({ family, dialect: dialectOf(version) });
    client.netlink = new NetlinkWriter(family, channel, encoder);
  }
  log.info('Writing rules of iptables', {
    ipFamily: client.family,
    writer: isNetlink ? 'netlink' : 'restore',
    reason,
  });
}

async function choiceFor(client: IptablesClient, options: WriterOptions): Promise<Choice> {
  const { junction, layout, channel } = options;
  if (junction.iptablesWriter === 'restore') return { isNetlink: false, reason: 'as configured' };
  if (client.variant === 'legacy')
    return { isNetlink: false, reason: 'the legacy variant is not in nf_tables' };
  try {
    const difference = await findDifference(client, channel, layout);
    if (difference !== undefined) return { isNetlink: false, reason: difference };
  } catch (error) {
    if (!isJunctionError(error)) throw error;
    return { isNetlink: false, reason: `the trial failed: ${error.message}` };
  }
  return { isNetlink: true, reason: `a trial with iptables ${client.version} found no difference` };
}
