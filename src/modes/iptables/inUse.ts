/** Which variants of iptables may hold rules of ours. */
import { isJunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import type { CommandRunner } from '../../system/processes.ts';
import { programsOf, type VariantChoice } from './variant.ts';

/**
 * nft wherever it is installed. legacy only if the kernel has tables of it, because asking for one would create it.
 * A system so old that it has only plain `iptables` is taken as it is.
 */
export async function variantsInUse(
  family: Family,
  runner: CommandRunner,
): Promise<readonly VariantChoice[]> {
  const variants: VariantChoice[] = [];
  if (await exists(programsOf(family, 'nft').save, runner)) variants.push('nft');
  if ((await hasLegacyTables(family, runner)) && (await exists(programsOf(family, 'legacy').save, runner))) {
    variants.push('legacy');
  }
  return variants.length > 0 ? variants : ['system'];
}

const TIMEOUT_MS = 30_000;

async function exists(program: string, runner: CommandRunner): Promise<boolean> {
  try {
    await runner([program, '--version'], { timeoutMs: TIMEOUT_MS });
    return true;
  } catch (error) {
    if (isJunctionError(error, 'PROGRAM_MISSING')) return false;
    throw error;
  }
}

async function hasLegacyTables(family: Family, runner: CommandRunner): Promise<boolean> {
  const file = family === 'IPv4' ? '/proc/net/ip_tables_names' : '/proc/net/ip6_tables_names';
  const { code, stdout } = await runner(['cat', file]); // by the runner, which may enter another namespace
  return code === 0 && stdout.trim() !== '';
}
