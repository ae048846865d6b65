/** Another checkout of Junction to measure beside this one: a folder that is built, or a commit that is built here. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BadArgument, progress } from '../arguments.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

export interface Checkout {
  readonly name: string;
  /** Its dist/junction.js. */
  readonly program: string;
  close(): void;
}

export function thisCheckout(): Checkout {
  const program = fileURLToPath(new URL('junction.js', import.meta.url));
  return { name: 'now', program, close: () => {} };
}

export function openBaseline(given: string): Checkout {
  const built = resolve(given, 'dist/junction.js');
  if (existsSync(built)) return { name: 'before', program: built, close: () => {} };
  const commit = commitNamed(given);
  const folder = mkdtempSync(join(tmpdir(), 'junction-baseline-'));
  const close = (): void => {
    rmSync(folder, { recursive: true, force: true });
    git('worktree', 'prune');
  };
  try {
    progress(`building ${given}`);
    const checkout = join(folder, 'checkout');
    git('worktree', 'add', '--quiet', '--detach', checkout, commit);
    symlinkSync(join(ROOT, 'node_modules'), join(checkout, 'node_modules'));
    execFileSync(process.execPath, ['scripts/build.mjs'], {
      cwd: checkout,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    return { name: 'before', program: join(checkout, 'dist/junction.js'), close };
  } catch (error) {
    close();
    throw error;
  }
}

function commitNamed(text: string): string {
  try {
    return git('rev-parse', '--verify', '--quiet', `${text}^{commit}`).trim();
  } catch {
    throw new BadArgument(
      `--baseline ${text}: expected a built checkout of Junction, or a commit of this one`,
    );
  }
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
}
