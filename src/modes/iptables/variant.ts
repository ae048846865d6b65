/**
 * Which iptables to use. A node may have two, the nft and the legacy variant, whose rules do not see each other; a
 * proxy in a container must use the one that the node's kubelet uses, whatever its own image points `iptables` to.
 */
import { isJunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import type { Argv, CommandRunner } from '../../system/processes.ts';
import { killed } from './outcome.ts';
import { type Variant, parseVersion } from './version.ts';

/** `system`: what `iptables` is, without looking further. */
export type VariantChoice = 'auto' | 'system' | Variant;

export interface Programs {
  readonly iptables: string;
  readonly save: string;
  readonly restore: string;
}

export interface ChosenVariant {
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
): Promise<ChosenVariant> {
  if (choice === 'system') {
    return {
      variant: undefined,
      programs: programsOf(family),
      reason: 'the iptables of this system was asked for',
    };
  }
  if (choice !== 'auto') {
    return {
      variant: choice,
      programs: programsOf(family, choice),
      reason: `the ${choice} variant was asked for`,
    };
  }
  const system = await systemVariant(family, runner);
  const seen = await look(family, system, runner);
  // The plain names where they mean the same: an old system has no others.
  const programs = programsOf(family, seen.variant === system ? undefined : seen.variant);
  return { ...seen, programs };
}

type Verdict = Pick<ChosenVariant, 'variant' | 'reason'> & { readonly variant: Variant };

async function look(family: Family, system: Variant | undefined, runner: CommandRunner): Promise<Verdict> {
  const legacyTables = await tablesOfLegacy(family, runner);
  for (const variant of ['nft', 'legacy'] as const) {
    if (variant === 'legacy' && !legacyTables.includes('mangle')) continue;
    const hint = HINT_CHAIN.exec(await saved(family, variant, runner, ['-t', 'mangle']))?.[1];
    if (hint) return { variant, reason: `kubelet's chain ${hint} is in the ${variant} variant` };
  }
  const nft = countRules(await saved(family, 'nft', runner, []));
  const legacy = legacyTables.length === 0 ? 0 : countRules(await saved(family, 'legacy', runner, []));
  const busier = clearlyMore({ nft, legacy });
  if (busier) return { variant: busier, reason: `the nft variant holds ${nft} rules, legacy ${legacy}` };
  if (system)
    return { variant: system, reason: `iptables is the ${system} variant, and no rules speak against it` };
  return fallback(family, runner);
}

async function systemVariant(family: Family, runner: CommandRunner): Promise<Variant | undefined> {
  const text = await output(runner, [programsOf(family).iptables, '--version']);
  return text === undefined ? undefined : parseVersion(text)?.variant;
}

/** Neither rules nor a plain `iptables`: whichever there is. Opening it says so if there is none. */
async function fallback(family: Family, runner: CommandRunner): Promise<Verdict> {
  const legacyOnly =
    (await output(runner, [programsOf(family, 'nft').iptables, '--version'])) === undefined &&
    (await output(runner, [programsOf(family, 'legacy').iptables, '--version'])) !== undefined;
  return legacyOnly
    ? { variant: 'legacy', reason: 'only the legacy variant is installed' }
    : { variant: 'nft', reason: 'there is no plain iptables, and nft is the newer variant' };
}

/**
 * Asking legacy for a table creates that table in the kernel, where it then costs every packet. So look first which
 * there are. (Without `-t`, the save program reads only those.)
 */
async function tablesOfLegacy(family: Family, runner: CommandRunner): Promise<readonly string[]> {
  const file = family === 'IPv4' ? '/proc/net/ip_tables_names' : '/proc/net/ip6_tables_names';
  const names = await output(runner, ['cat', file]); // by the runner, which may enter another namespace
  return (names ?? '').split('\n').filter((name) => name !== '');
}

async function saved(
  family: Family,
  variant: Variant,
  runner: CommandRunner,
  args: readonly string[],
): Promise<string> {
  return (await output(runner, [programsOf(family, variant).save, ...args])) ?? '';
}

async function output(runner: CommandRunner, argv: Argv): Promise<string | undefined> {
  try {
    const result = await runner(argv, { timeoutMs: 60_000 });
    // One that was killed has not said that there are no rules.
    if (result.code === null) throw killed(argv, result);
    return result.code === 0 ? result.stdout : undefined;
  } catch (error) {
    if (isJunctionError(error, 'PROGRAM_MISSING')) return undefined;
    throw error;
  }
}

const HINT_CHAIN = /^:(KUBE-IPTABLES-HINT|KUBE-KUBELET-CANARY) /m;

function countRules(text: string): number {
  return text.match(/^-A /gm)?.length ?? 0;
}

/** A handful of rules proves nothing: docker or a VPN client may have left them in either variant. */
function clearlyMore({ nft, legacy }: Readonly<Record<Variant, number>>): Variant | undefined {
  if (nft >= 10 && nft > legacy * 2) return 'nft';
  if (legacy >= 10 && legacy > nft * 2) return 'legacy';
  return undefined;
}
