/** Which way rules are written: by netlink where that is known to leave the same tables, otherwise by iptables-restore. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ValidConfig } from '../../../config/effective.ts';
import { attempt, isJunctionError, JunctionError } from '../../../errors.ts';
import type { Log } from '../../../log/log.ts';
import type { RulesChannel } from '../../../netlink/channel.ts';
import { bootId } from '../../../system/record/recordFile.ts';
import { VERSION } from '../../../version.ts';
import type { IptablesClient } from '../client.ts';
import type { Layout } from '../rules/fragment.ts';
import { dialectOf } from './dialect.ts';
import { RuleEncoder } from './encodeRule.ts';
import { findDifference } from './trial.ts';
import { NetlinkWriter } from './writer.ts';

interface WriterOptions {
  readonly junction: Pick<ValidConfig['junction'], 'iptablesWriter' | 'stateDir'>;
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
  const known = new KnownTrial(junction.stateDir, client);
  if (known.isSame)
    return { isNetlink: true, reason: 'a trial since the machine was started found no difference' };
  try {
    const difference = await findDifference(client, channel, layout);
    if (difference !== undefined) return { isNetlink: false, reason: difference };
  } catch (error) {
    if (!isJunctionError(error)) throw error;
    return { isNetlink: false, reason: `the trial failed: ${error.message}` };
  }
  known.note();
  return { isNetlink: true, reason: `a trial with iptables ${client.version} found no difference` };
}

/** That a trial found no difference, for as long as kernel and programs are the same: with many chains it takes long. */
class KnownTrial {
  readonly #path: string | undefined;
  readonly #key: string;

  constructor(folder: string, { family, version, programs }: IptablesClient) {
    this.#path = folder === '' ? undefined : join(folder, `iptables-writer-${family}`);
    this.#key = [VERSION, version, programs.restore, attempt(bootId) ?? ''].join('\n');
  }

  get isSame(): boolean {
    const path = this.#path;
    return path !== undefined && attempt(() => readFileSync(path, 'utf8')) === this.#key;
  }

  /** Without the file, the next start tries again. */
  note(): void {
    const path = this.#path;
    if (path === undefined) return;
    attempt(() => {
      mkdirSync(join(path, '..'), { recursive: true });
      writeFileSync(path, this.#key, { mode: 0o600 });
    });
  }
}
