/** Which address families this machine can serve with iptables. One that nobody could ask for is not given up. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../time/systemClock.ts';
import { wait } from '../../time/wait.ts';
import { isJunctionError, JunctionError } from '../../errors.ts';
import { type ChainLook, IptablesClient } from './client.ts';
import type { NftLook } from './nftLook.ts';
import { type ProcessObserver, isUnanswered } from '../../system/processes.ts';
import { readSysctl } from '../../system/sysctl.ts';
import { FAMILIES, type Family } from '../../model/ip.ts';
import type { FamilyAnswer, FamilySupport, NotServed, ModeOptions } from '../mode.ts';
import { servedFamilies } from '../staleObjects.ts';
import type { Log } from '../../log/log.ts';

export interface OpenedFamilies {
  /** Also of families that are left out, where the programs are there. */
  readonly clients: readonly IptablesClient[];
  readonly families: readonly FamilySupport[];
}

interface FamilyOptions extends Pick<ModeOptions, 'config' | 'log' | 'runner' | 'signal'> {
  /** Notified of every program that is started. */
  readonly programs?: ProcessObserver | undefined;
  readonly nft?: ((family: Family) => NftLook) | undefined;
}

interface Asked {
  readonly client?: IptablesClient;
  readonly answer: FamilyAnswer;
}

/** How long a start waits for an answer: another program may hold the xtables lock for long, but not for ever. */
const PATIENCE_MS = 60_000;
const PAUSE_MS = 1000;

/** Throws when there is no family that can be served. */
export async function openFamilies(options: FamilyOptions): Promise<OpenedFamilies> {
  const { log } = options;
  const opener = new FamilyOpener(options, performance.now() + PATIENCE_MS);
  const clients: IptablesClient[] = [];
  const families: FamilySupport[] = [];
  for (const family of FAMILIES) {
    if (family === 'IPv6' && !isIpv6Enabled()) {
      log.info('No IPv6 on this machine: serving IPv4 only');
      continue;
    }
    const { client, answer } = await opener.askPatiently(family);
    if (client) clients.push(client);
    families.push({ family, answer, isStartable: client !== undefined });
    if (answer.state === 'works') {
      const { version, variant, reason } = client ?? {};
      log.info('Using iptables', { ipFamily: family, version, variant, reason });
    } else {
      const { reason, remedy } = answer;
      log.warn('This family is left out for now', { ipFamily: family, reason, whatToDo: remedy });
    }
  }
  if (servedFamilies(families).length === 0) throw noFamily(families);
  logStack(families, log);
  return { clients, families };
}

export function logStack(families: readonly FamilySupport[], log: Log): void {
  const served = servedFamilies(families);
  log.info(`kube-proxy running in ${served.length > 1 ? 'dual' : 'single'}-stack mode`, {
    families: served.join(','),
  });
}

/** Asks once more, with a client that is open. */
export async function probeClient(client: IptablesClient): Promise<FamilyAnswer> {
  return answerOf(await client.lookForChain('nat', 'POSTROUTING'), client);
}

function answerOf(look: ChainLook, client: IptablesClient): FamilyAnswer {
  switch (look.state) {
    case 'present':
      return { state: 'works' };
    case 'absent':
      return {
        state: 'absent',
        reason: `the kernel has no nat table: ${client.programs.iptables} ${look.reason}`,
        remedy: `\`${client.programs.iptables} -t nat -S POSTROUTING\` shows what the kernel says.`,
      };
    case 'unknown':
      return unableToAsk(look.error);
  }
}

export function clientOf(clients: readonly IptablesClient[], family: Family): IptablesClient {
  const client = clients.find((other) => other.family === family);
  if (!client) throw new JunctionError('IPTABLES_FAILED', `iptables does not work for ${family}`);
  return client;
}

export function isIpv6Enabled(): boolean {
  if (!existsSync('/proc/net/if_inet6')) return false;
  return readSysctl('net/ipv6/conf/all/disable_ipv6') !== '1';
}

function unableToAsk(error: JunctionError): NotServed {
  const state = isUnanswered(error) ? 'unanswered' : 'absent';
  return { state, reason: error.message, remedy: error.hint };
}

function noFamily(families: readonly FamilySupport[]): JunctionError {
  const reasons = families.flatMap(({ family, answer }) =>
    answer.state === 'works' ? [] : [{ family, ...answer }],
  );
  const [first] = reasons;
  const what = reasons.some(({ state }) => state === 'unanswered')
    ? `iptables could not be asked for ${PATIENCE_MS / 1000} s`
    : 'iptables is not available on this host';
  return new JunctionError('IPTABLES_FAILED', `${what}: ${first?.reason}`, {
    detail: reasons.map(({ family, reason }) => `- ${family}: ${reason}`).join('\n'),
    hint: first?.remedy,
  });
}

class FamilyOpener {
  readonly #options: FamilyOptions;
  readonly #until: number;
  /**
   * Of the xtables lock. Where /run cannot be written, the legacy variant refuses to work at all; with a file of our own
   * it works, but does not keep out of the way of other programs.
   */
  #lockPath: string | undefined;

  constructor(options: FamilyOptions, until: number) {
    this.#options = options;
    this.#until = until;
  }

  async askPatiently(family: Family): Promise<Asked> {
    const { log, signal } = this.#options;
    for (;;) {
      const asked = await this.#ask(family);
      const { answer } = asked;
      if (answer.state !== 'unanswered' || performance.now() >= this.#until) return asked;
      log.warn('Could not list the nat table; retrying', {
        ipFamily: family,
        reason: answer.reason,
        whatToDo: answer.remedy,
      });
      await wait(systemClock, PAUSE_MS, signal);
      signal.throwIfAborted();
    }
  }

  async #ask(family: Family): Promise<Asked> {
    const { config, runner, programs, nft } = this.#options;
    const variant = config.junction.iptablesVariant;
    const lockPath = this.#lockPath;
    try {
      const client = await IptablesClient.open({
        family,
        variant,
        runner,
        programs,
        lockPath,
        nft: nft?.(family),
      });
      const look = await client.lookForChain('nat', 'POSTROUTING');
      const isUnusable = look.state === 'unknown' && look.error.code === 'XTABLES_LOCK_UNUSABLE';
      if (isUnusable && this.#replaceLock(look.error)) return await this.#ask(family);
      return { client, answer: answerOf(look, client) };
    } catch (error) {
      if (!isJunctionError(error)) throw error;
      return { answer: unableToAsk(error) };
    }
  }

  /** False: there is no place for one. */
  #replaceLock(error: JunctionError): boolean {
    if (this.#lockPath !== undefined) return false;
    try {
      const folder = mkdtempSync(join(tmpdir(), 'junction-lock-'));
      process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
      this.#lockPath = join(folder, 'xtables.lock');
    } catch {
      return false;
    }
    this.#options.log.warn('The xtables lock cannot be used; going on with a lock file of our own', {
      err: error,
      lock: this.#lockPath,
      consequence: 'a change at the same moment by another program that runs iptables-legacy may be lost',
      whatToDo: error.hint,
    });
    return true;
  }
}
