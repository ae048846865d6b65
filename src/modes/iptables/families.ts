/** Which address families this machine can serve with iptables. One that nobody could ask for is not given up. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../time/systemClock.ts';
import { wait } from '../../time/wait.ts';
import { attempt, isJunctionError, JunctionError } from '../../errors.ts';
import { type ChainLook, IptablesClient } from './client.ts';
import type { NftLook } from './kernelTables.ts';
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

/** The lock file of all families; `path` unset: the default one. */
interface Lock {
  path: string | undefined;
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
  const until = performance.now() + PATIENCE_MS;
  const lock: Lock = { path: undefined };
  const clients: IptablesClient[] = [];
  const families: FamilySupport[] = [];
  for (const family of FAMILIES) {
    if (family === 'IPv6' && !isIpv6Enabled()) {
      log.info('No IPv6 on this machine: serving IPv4 only');
      continue;
    }
    const { client, answer } = await askPatiently(family, options, lock, until);
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

export async function probeClient(client: IptablesClient): Promise<FamilyAnswer> {
  return answerOf(await client.lookForChain('nat', 'POSTROUTING'), client);
}

function answerOf(look: ChainLook, { programs: { iptables } }: IptablesClient): FamilyAnswer {
  if (look.state === 'present') return { state: 'works' };
  if (look.state === 'unknown') return unableToAsk(look.error);
  return {
    state: 'absent',
    reason: `the kernel has no nat table: ${iptables} ${look.reason}`,
    remedy: `\`${iptables} -t nat -S POSTROUTING\` shows what the kernel says.`,
  };
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

async function askPatiently(
  family: Family,
  options: FamilyOptions,
  lock: Lock,
  until: number,
): Promise<Asked> {
  const { log, signal } = options;
  for (;;) {
    const asked = await ask(family, options, lock);
    const { answer } = asked;
    if (answer.state !== 'unanswered' || performance.now() >= until) return asked;
    log.warn('Could not list the nat table; retrying', {
      ipFamily: family,
      reason: answer.reason,
      whatToDo: answer.remedy,
    });
    await wait(systemClock, PAUSE_MS, signal);
    signal.throwIfAborted();
  }
}

async function ask(family: Family, options: FamilyOptions, lock: Lock): Promise<Asked> {
  const { config, runner, programs, nft, log } = options;
  const variant = config.junction.iptablesVariant;
  try {
    const open = { family, variant, runner, programs, lockPath: lock.path, nft: nft?.(family) };
    const client = await IptablesClient.open(open);
    const look = await client.lookForChain('nat', 'POSTROUTING');
    if (look.state === 'unknown' && look.error.code === 'XTABLES_LOCK_UNUSABLE' && lock.path === undefined) {
      lock.path = ownLock(look.error, log);
      if (lock.path !== undefined) return await ask(family, options, lock);
    }
    return { client, answer: answerOf(look, client) };
  } catch (error) {
    if (!isJunctionError(error)) throw error;
    return { answer: unableToAsk(error) };
  }
}

/**
 * Where /run cannot be written, the legacy variant refuses to work at all; with a file of our own it works, but does not keep
 * out of the way of other programs. `undefined`: there is no place for one.
 */
function ownLock(err: JunctionError, log: Log): string | undefined {
  const folder = attempt(() => mkdtempSync(join(tmpdir(), 'junction-lock-')));
  if (folder === undefined) return undefined;
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const lock = join(folder, 'xtables.lock');
  log.warn('The xtables lock cannot be used; going on with a lock file of our own', {
    err,
    lock,
    consequence: 'a change at the same moment by another program that runs iptables-legacy may be lost',
    whatToDo: err.hint,
  });
  return lock;
}
