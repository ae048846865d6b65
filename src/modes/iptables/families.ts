/** Which address families this machine can serve with iptables. One that nobody could ask for is not given up. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isJunctionError, JunctionError } from '../../errors.ts';
import { type ChainLook, IptablesDoor } from './client.ts';
import { type ProcessObserver, isUnanswered } from '../../system/processes.ts';
import { readSysctl } from '../../system/sysctl.ts';
import { FAMILIES, type Family } from '../../model/ip.ts';
import type { FamilyAnswer, LeftOutFamily, NotServed } from '../familyState.ts';
import type { ModeOptions } from '../mode.ts';

export interface OpenedFamilies {
  /** Also of families that are left out, where the programs are there. */
  readonly doors: readonly IptablesDoor[];
  readonly served: readonly Family[];
  readonly leftOut: readonly LeftOutFamily[];
}

export interface FamilyOptions extends Pick<ModeOptions, 'config' | 'log' | 'runner' | 'signal'> {
  /** How long a start waits for an answer. */
  readonly patienceMs?: number | undefined;
  readonly pauseMs?: number | undefined;
  /** Told of every program that is started. */
  readonly programs?: ProcessObserver | undefined;
}

interface Asked {
  readonly door?: IptablesDoor;
  readonly answer: FamilyAnswer;
}

/** Another program may hold the xtables lock for long, but not for ever. */
const PATIENCE_MS = 60_000;
const PAUSE_MS = 1000;

/** Throws when there is no family that can be served. */
export async function openFamilies(options: FamilyOptions): Promise<OpenedFamilies> {
  const { log } = options;
  const patienceMs = options.patienceMs ?? PATIENCE_MS;
  const until = performance.now() + patienceMs;
  const lock = new LockFile(options);
  const doors: IptablesDoor[] = [];
  const served: Family[] = [];
  const leftOut: LeftOutFamily[] = [];
  for (const family of FAMILIES) {
    if (family === 'IPv6' && !isIpv6Enabled()) {
      log.info('No IPv6 on this machine: serving IPv4 only');
      continue;
    }
    const { door, answer } = await askPatiently(family, lock, options, until);
    if (door) doors.push(door);
    if (answer.state === 'works') {
      served.push(family);
      log.info('Using iptables', { ipFamily: family, ...aboutDoor(door) });
    } else {
      leftOut.push({ family, answer });
      const { reason, remedy } = answer;
      log.warn('This family is left out for now', { ipFamily: family, reason, whatToDo: remedy });
    }
  }
  if (served.length === 0) throw noFamily(leftOut, patienceMs);
  log.info(`kube-proxy running in ${served.length > 1 ? 'dual' : 'single'}-stack mode`, {
    families: served.join(','),
  });
  return { doors, served, leftOut };
}

/** Asks once more, with a door that is open. */
export async function askDoor(door: IptablesDoor): Promise<FamilyAnswer> {
  return answerOf(await lookForNat(door), door);
}

function lookForNat(door: IptablesDoor): Promise<ChainLook> {
  return door.lookForChain('nat', 'POSTROUTING');
}

function answerOf(look: ChainLook, door: IptablesDoor): FamilyAnswer {
  switch (look.state) {
    case 'present':
      return { state: 'works' };
    case 'absent':
      return {
        state: 'absent',
        reason: `the kernel has no nat table: ${door.programs.iptables} ${look.reason}`,
        remedy: `\`${door.programs.iptables} -t nat -S POSTROUTING\` shows what the kernel says.`,
      };
    case 'unknown':
      return unableToAsk(look.error);
  }
}

export function doorOf(doors: readonly IptablesDoor[], family: Family): IptablesDoor {
  const door = doors.find((other) => other.family === family);
  if (!door) throw new JunctionError('IPTABLES_FAILED', `iptables does not work for ${family}`);
  return door;
}

export function isIpv6Enabled(): boolean {
  if (!existsSync('/proc/net/if_inet6')) return false;
  return readSysctl('net/ipv6/conf/all/disable_ipv6') !== '1';
}

async function askPatiently(
  family: Family,
  lock: LockFile,
  { config, runner, log, signal, programs, pauseMs = PAUSE_MS }: FamilyOptions,
  until: number,
): Promise<Asked> {
  const variant = config.junction.iptablesVariant;
  for (;;) {
    const asked = await ask(
      () => IptablesDoor.open({ family, variant, runner, programs, lockPath: lock.path }),
      lock,
    );
    const { answer } = asked;
    if (answer.state !== 'unanswered' || performance.now() >= until) return asked;
    log.warn('Could not ask for the nat table; asking again', {
      ipFamily: family,
      reason: answer.reason,
      whatToDo: answer.remedy,
    });
    await sleep(pauseMs, undefined, { signal });
  }
}

async function ask(open: () => Promise<IptablesDoor>, lock: LockFile): Promise<Asked> {
  try {
    const door = await open();
    const look = await lookForNat(door);
    const isUnusable = look.state === 'unknown' && look.error.code === 'XTABLES_LOCK_UNUSABLE';
    if (isUnusable && lock.replace(look.error)) return await ask(open, lock);
    return { door, answer: answerOf(look, door) };
  } catch (error) {
    if (!isJunctionError(error)) throw error;
    return { answer: unableToAsk(error) };
  }
}

function unableToAsk(error: JunctionError): NotServed {
  const state = isUnanswered(error) ? 'unanswered' : 'absent';
  return { state, reason: error.message, remedy: error.hint };
}

function aboutDoor(door: IptablesDoor | undefined): Readonly<Record<string, unknown>> {
  return { version: door?.version, variant: door?.variant, reason: door?.reason };
}

function noFamily(leftOut: readonly LeftOutFamily[], patienceMs: number): JunctionError {
  const unanswered = leftOut.some(({ answer }) => answer.state === 'unanswered');
  const [first] = leftOut;
  const what = unanswered
    ? `iptables could not be asked for ${patienceMs / 1000} s: ${first?.answer.reason}`
    : `iptables is not available on this host: ${first?.answer.reason}`;
  return new JunctionError('IPTABLES_FAILED', what, {
    detail: leftOut.map(({ family, answer }) => `- ${family}: ${answer.reason}`).join('\n'),
    hint: first?.answer.remedy,
  });
}

/**
 * The xtables lock. Where /run cannot be written, the legacy variant refuses to work at all; with a file of our own it
 * works, but does not keep out of the way of other programs.
 */
class LockFile {
  readonly #log: FamilyOptions['log'];
  path: string | undefined;

  constructor({ log }: Pick<FamilyOptions, 'log'>) {
    this.#log = log;
  }

  /** False: there is no place for one. */
  replace(error: JunctionError): boolean {
    if (this.path !== undefined) return false;
    try {
      const folder = mkdtempSync(join(tmpdir(), 'junction-lock-'));
      process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
      this.path = join(folder, 'xtables.lock');
    } catch {
      return false;
    }
    this.#log.warn('The xtables lock cannot be used; going on with a lock file of our own', {
      err: error,
      lock: this.path,
      consequence: 'a change at the same moment by another program that runs iptables-legacy may be lost',
      whatToDo: error.hint,
    });
    return true;
  }
}
