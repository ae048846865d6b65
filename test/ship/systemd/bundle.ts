/** The archive and the Debian package, compressed as little as possible. */
import { join } from 'node:path';
import { VERSION } from '../../../src/version.ts';
import { script } from '../scripts.ts';

export async function buildBundle(
  folder: string,
): Promise<{ readonly archive: string; readonly debian: string }> {
  const { QUICK, buildNodeBundle } = await script('ship/bundle/bundle');
  const options = { arch: 'x64', version: VERSION, compression: QUICK };
  const [archive, debian] = await buildNodeBundle(folder, options);
  if (!archive || !debian) throw new Error('two files were expected');
  return { archive: join(folder, archive.name), debian: join(folder, debian.name) };
}
