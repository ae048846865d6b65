/**
 * Which iptables to use. A node may have two, the nft and the legacy variant, whose rules do not see each other; a
 * proxy in a container must use the one that the node's kubelet uses, whatever its own image points `iptables` to.
 */
import { readFileSync } from 'node:fs';
import { attempt, isJunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import type { Argv, CommandRunner, RunResult } from '../../system/processes.ts';
import { type NftLook, nftLook } from './kernelTables.ts';
import { killed } from './outcome.ts';

/** `system`: what `iptables` is, without looking further. */
export type VariantChoice = 'auto' | 'system' | Variant;

export interface Programs {
  readonly iptables: string;
  readonly save: string;
  readonly restore: string;
}

interface ChosenVariant {
  /** `undefined` when nobody looked. */
  readonly variant: Variant | undefined;
  readonly programs: Programs;
  readonly reason: string;
}

export function programsOf(family: Family, variant?: Variant): Programs {
  const base = `${family === 'IPv4' ? 'iptables' : 'ip6tables'}${variant ? `-${variant}` : ''}`;
  return { iptables: base, save: `${base}-save`, restore: `${base}-restore` };
}

export async function chooseVariant(
  family: Family,
  choice: VariantChoice,
  runner: CommandRunner,
  nft: NftLook = nftLook(family),
): Promise<ChosenVariant> {
  if (choice !== 'auto') {
    const variant = choice === 'system' ? undefined : choice;
    const what = variant === undefined ? 'iptables of this system' : `${variant} variant`;
    return { variant, programs: programsOf(family, variant), reason: `the ${what} was asked for` };
  }
  const system = await systemVariant(family, runner);
  const seen = await look(family, system, runner, nft);
  // The plain names where they mean the same: an old system has no others.
  const programs = programsOf(family, seen.variant === system ? undefined : seen.variant);
  return { ...seen, programs };
}

type Verdict = Pick<ChosenVariant, 'reason'> & { readonly variant: Variant };

async function look(
  family: Family,
  system: Variant | undefined,
  runner: CommandRunner,
  nft: NftLook,
): Promise<Verdict> {
  const hasNft = system === 'nft' || (await exists(programsOf(family, 'nft').save, runner));
  const hint = HINT_CHAINS.find((chain) => hasNft && nft.hasChain('mangle', chain));
  if (hint) return kubeletIn('nft', hint);
  const tables = await tablesOfLegacy(family, runner);
  const saved = async (...args: readonly string[]): Promise<string> =>
    (await output(runner, [programsOf(family, 'legacy').save, ...args])) ?? '';
  const legacyHint = tables.includes('mangle')
    ? HINT_CHAIN.exec(await saved('-t', 'mangle'))?.[1]
    : undefined;
  if (legacyHint) return kubeletIn('legacy', legacyHint);
  const legacy = tables.length === 0 ? 0 : countRules(await saved());
  const most = Math.max(FEW_RULES, legacy * 2);
  const count = hasNft ? nft.countRules(most) : 0;
  const busier = clearlyMore({ nft: count, legacy });
  if (busier) {
    const holds = count > most ? `more than ${most}` : count;
    return { variant: busier, reason: `the nft variant holds ${holds} rules, legacy ${legacy}` };
  }
  if (system)
    return { variant: system, reason: `iptables is the ${system} variant, and no rules speak against it` };
  return hasNft || !(await exists(programsOf(family, 'legacy').iptables, runner))
    ? { variant: 'nft', reason: 'there is no plain iptables, and nft is the newer variant' }
    : { variant: 'legacy', reason: 'only the legacy variant is installed' };
}

function kubeletIn(variant: Variant, chain: string): Verdict {
  return { variant, reason: `kubelet's chain ${chain} is in the ${variant} variant` };
}

async function systemVariant(family: Family, runner: CommandRunner): Promise<Variant | undefined> {
  const text = await output(runner, [programsOf(family).iptables, '--version']);
  return text === undefined ? undefined : parseVersion(text)?.variant;
}

/**
 * Asking legacy for a table creates that table in the kernel, where it then costs every packet. So look first which
 * there are. (Without `-t`, the save program reads only those.)
 */
async function tablesOfLegacy(family: Family, runner: CommandRunner): Promise<readonly string[]> {
  const file = family === 'IPv4' ? '/proc/net/ip_tables_names' : '/proc/net/ip6_tables_names';
  const names = await content(file, runner);
  return names.split('\n').filter((name) => name !== '');
}

/** By the runner, which may enter another namespace; an image without `cat` has no other to enter. */
async function content(file: string, runner: CommandRunner): Promise<string> {
  try {
    const { code, stdout } = await completed(runner, ['cat', file]);
    return code === 0 ? stdout : '';
  } catch (error) {
    if (!isJunctionError(error, 'PROGRAM_MISSING')) throw error;
    return attempt(() => readFileSync(file, 'utf8')) ?? '';
  }
}

async function output(runner: CommandRunner, argv: Argv): Promise<string | undefined> {
  try {
    const { code, stdout } = await completed(runner, argv);
    return code === 0 ? stdout : undefined;
  } catch (error) {
    if (isJunctionError(error, 'PROGRAM_MISSING')) return undefined;
    throw error;
  }
}

async function completed(runner: CommandRunner, argv: Argv): Promise<RunResult> {
  const result = await runner(argv, { timeoutMs: 60_000 });
  // One that was killed has not said that there are no rules.
  if (result.code === null) throw killed(argv, result);
  return result;
}

const HINT_CHAINS = ['KUBE-IPTABLES-HINT', 'KUBE-KUBELET-CANARY'];
const HINT_CHAIN = new RegExp(`^:(${HINT_CHAINS.join('|')}) `, 'm');
/** Docker or a VPN client may have left them in either variant. */
const FEW_RULES = 9;

function countRules(text: string): number {
  return text.match(/^-A /gm)?.length ?? 0;
}

/** A handful of rules proves nothing. */
function clearlyMore({ nft, legacy }: Readonly<Record<Variant, number>>): Variant | undefined {
  if (nft > FEW_RULES && nft > legacy * 2) return 'nft';
  if (legacy > FEW_RULES && legacy > nft * 2) return 'legacy';
  return undefined;
}

/* What an iptables can do, from the version that it prints. Pure. */

export type Variant = 'nft' | 'legacy';

interface IptablesVersion {
  /** `1.8.9` */
  readonly text: string;
  readonly variant: Variant;
}

export interface IptablesFeatures {
  /** `-C` exists. */
  readonly check: boolean;
  /** Goes before the operation: `['-w', '5']`, `['-w']` (waits without limit), or nothing. */
  readonly wait: readonly string[];
  /** The same for restore; `undefined` means that restore takes no lock, so that we take it. */
  readonly restoreWait: readonly string[] | undefined;
  /** `-j MASQUERADE --random-fully` exists. */
  readonly randomFully: boolean;
}

const VERSION = /v([0-9]+(\.[0-9]+)+)/;

/** Reads `iptables v1.8.9 (nf_tables)`. Before 1.8 there was only what is called legacy now, and no word for it. */
export function parseVersion(output: string): IptablesVersion | undefined {
  const text = VERSION.exec(output)?.[1];
  return text === undefined
    ? undefined
    : { text, variant: output.includes('(nf_tables)') ? 'nft' : 'legacy' };
}

export function atLeast(version: string, minimum: string): boolean {
  const wanted = minimum.split('.').map(Number);
  const parts = version.split('.').map(Number);
  for (let index = 0; index < Math.max(wanted.length, parts.length); index++) {
    const difference = (parts[index] ?? 0) - (wanted[index] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}

/**
 * Upstream restore learned `-w` in 1.6.2, but Red Hat brought it to older versions, together with `--version`. So for
 * those versions an `iptables-restore --version` that answers means that `-w` is there.
 */
export function needsRestoreProbe(version: string): boolean {
  return !atLeast(version, '1.6.2');
}

/** With empty input: a restore that does not know the option goes on to read rules. */
export async function restorePrintsVersion(runner: CommandRunner, restore: string): Promise<boolean> {
  const result = await runner([restore, '--version'], { stdin: '', timeoutMs: 30_000 });
  return parseVersion(result.stdout + result.stderr) !== undefined;
}

export function featuresOf(
  version: string,
  restoreHasVersion: boolean,
  lockSeconds: number,
): IptablesFeatures {
  const limited = ['-w', String(lockSeconds)];
  const unlimited = ['-w'];
  return {
    check: atLeast(version, '1.4.11'),
    wait: atLeast(version, '1.4.22') ? limited : atLeast(version, '1.4.20') ? unlimited : [],
    restoreWait: atLeast(version, '1.6.2') ? limited : restoreHasVersion ? unlimited : undefined,
    randomFully: atLeast(version, '1.6.2'),
  };
}

/**
 * The variants that may hold rules of ours: nft wherever it is installed, legacy only if the kernel has tables of it,
 * because asking for one would create it. A system so old that it has only plain `iptables` is taken as it is.
 */
export async function variantsInUse(
  family: Family,
  runner: CommandRunner,
): Promise<readonly VariantChoice[]> {
  const variants: VariantChoice[] = [];
  if (await exists(programsOf(family, 'nft').save, runner)) variants.push('nft');
  const hasLegacyTables = (await tablesOfLegacy(family, runner)).length > 0;
  if (hasLegacyTables && (await exists(programsOf(family, 'legacy').save, runner))) variants.push('legacy');
  return variants.length > 0 ? variants : ['system'];
}

async function exists(program: string, runner: CommandRunner): Promise<boolean> {
  try {
    await runner([program, '--version'], { timeoutMs: 30_000 });
    return true;
  } catch (error) {
    if (isJunctionError(error, 'PROGRAM_MISSING')) return false;
    throw error;
  }
}
