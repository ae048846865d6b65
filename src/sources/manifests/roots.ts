/** Whether the files and directories that the operator named can be looked into. */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { JunctionError } from '../../errors.ts';
import { explainRoot, type PathProblem } from './scan.ts';

/** Throws `MANIFESTS_UNREADABLE`, before anything is done. */
export async function checkRoots(paths: readonly string[]): Promise<void> {
  const problems: Pick<PathProblem, 'path' | 'message'>[] = [];
  for (const path of paths) {
    const message = await problemOf(path);
    if (message !== undefined) problems.push({ path, message });
  }
  if (problems.length > 0) throw unreadable(problems);
}

async function problemOf(path: string): Promise<string | undefined> {
  if (path === '-')
    return 'is standard input, which cannot be followed (junction plan reads it): name a file or a directory';
  try {
    const stats = await stat(path);
    if (!stats.isDirectory() && !stats.isFile()) return 'is neither a file nor a directory';
    await access(path, constants.R_OK);
    return undefined;
  } catch (error) {
    return explainRoot(path, error);
  }
}

export function unreadable(problems: readonly Pick<PathProblem, 'path' | 'message'>[]): JunctionError {
  const what = problems.map(({ path, message }) => `manifests: ${path} ${message}`).join('; ');
  return new JunctionError('MANIFESTS_UNREADABLE', what);
}
