/** The program nft, by which people look at the table. Junction does without it. */
import { isJunctionError } from '../../errors.ts';
import { absent, type Check, present } from './check.ts';
import type { Machine } from './machine.ts';

const SUBJECT = 'program nft';
const NEED = 'for looking at the table, by people alone';
/** The same as kube-proxy asks for. */
const OLDEST = [1, 0, 1];

/** Nothing where it is not installed. */
export async function nftProgramChecks(machine: Machine): Promise<readonly Check[]> {
  const version = await versionOf(machine);
  if (version === undefined) return [];
  return [
    isOlder(version)
      ? absent(
          SUBJECT,
          NEED,
          `version ${version}, which is known to misprint tables like ours, or to end with an error`,
          'A newer package nftables, if you want to look: 1.0.6 prints the table rightly.',
        )
      : present(SUBJECT, NEED, `version ${version}`),
  ];
}

async function versionOf(machine: Machine): Promise<string | undefined> {
  try {
    const { stdout } = await machine.run(['nft', '--version'], { stdin: '' });
    return /v(\d+\.\d+(?:\.\d+)?)/.exec(stdout)?.[1];
  } catch (error) {
    if (isJunctionError(error)) return undefined;
    throw error;
  }
}

function isOlder(version: string): boolean {
  const parts = version.split('.').map(Number);
  const differs = OLDEST.findIndex((part, index) => (parts[index] ?? 0) !== part);
  return differs >= 0 && (parts[differs] ?? 0) < (OLDEST[differs] ?? 0);
}
