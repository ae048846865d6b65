/** iptables in a network namespace of its own, for the tests that ask the real thing. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'vitest';

export const VARIANTS = ['nft', 'legacy'] as const;
export type Variant = (typeof VARIANTS)[number];
export type Command = 'iptables' | 'ip6tables';

/** Each restore's exit status, and then what a save shows. */
export interface Answer {
  readonly statuses: readonly number[];
  readonly complaints: string;
  readonly save: string;
}

const isRoot = process.getuid?.() === 0;
const NAMESPACE = isRoot ? ['--net'] : ['--user', '--map-root-user', '--net', '--mount'];

/** Loads the texts one after the other into an empty namespace. */
export function askKernel(command: Command, variant: Variant, restores: readonly string[]): Answer {
  const folder = mkdtempSync(join(tmpdir(), 'junction-iptables-'));
  try {
    const lines = restores.map(
      (_, index) =>
        `printf '%s' "$TEXT_${index}" | ${command}-${variant}-restore --noflush --counters; echo "status $?"`,
    );
    // Table by table, because without root iptables-legacy-save may not list the tables.
    const saves = ['filter', 'nat'].map((table) => `${command}-${variant}-save -c -t ${table}`);
    const script = [...lines, ...saves].join('\n');
    const texts = Object.fromEntries(restores.map((text, index) => [`TEXT_${index}`, text]));
    const result = spawnSync('unshare', [...NAMESPACE, 'sh', '-c', script], {
      encoding: 'utf8',
      env: { ...process.env, ...texts, XTABLES_LOCKFILE: join(folder, 'lock') },
    });
    if (result.error) throw result.error;
    const [statuses, save] = splitAnswer(result.stdout);
    return { statuses, save, complaints: result.stderr };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function isStatus(line: string): boolean {
  return line.startsWith('status ');
}

function splitAnswer(output: string): readonly [number[], string] {
  const lines = output.split('\n');
  return [
    lines.filter(isStatus).map((line) => Number(line.slice('status '.length))),
    lines.filter((line) => !isStatus(line)).join('\n'),
  ];
}

let missing: { readonly reason: string | undefined } | undefined;

/** Skips where iptables cannot run in a namespace, and says why. On CI that is a failure: skipped is untested. */
export function requireIptables(context: Pick<TestContext, 'skip'>): void {
  missing ??= { reason: whyNot() };
  if (missing.reason === undefined) return;
  if (process.env['CI'] === 'true') throw new Error(missing.reason);
  context.skip(missing.reason);
}

function whyNot(): string | undefined {
  for (const variant of VARIANTS) {
    try {
      execFileSync('unshare', [...NAMESPACE, `iptables-${variant}-save`, '-t', 'filter'], { stdio: 'pipe' });
    } catch (error) {
      return `iptables-${variant} does not run in a network namespace here: ${String(error)}`;
    }
  }
  return undefined;
}
