/** What the scripts that ship Junction are made of: plain JavaScript, with types for the tests. */
interface Compression {
  readonly archive: string;
  readonly package: readonly string[];
}

interface BundleScripts {
  readonly QUICK: Compression;
  readonly buildNodeBundle: (
    destination: string,
    options: { readonly arch: string; readonly version: string; readonly compression: Compression },
  ) => Promise<readonly { readonly name: string; readonly size: number }[]>;
}

interface CacheScripts {
  readonly cached: (name: string, make: (folder: string) => Promise<void>) => Promise<string>;
}

interface DebianScripts {
  readonly MIRROR: string;
  readonly KEYRING: string;
}

async function load<T>(path: string): Promise<T> {
  const loaded: T = await import(new URL(`../../../scripts/ship/${path}`, import.meta.url).href);
  return loaded;
}

export const bundleScripts = await load<BundleScripts>('bundle/bundle.mjs');
export const cacheScripts = await load<CacheScripts>('cache.mjs');
export const debianScripts = await load<DebianScripts>('image/debian.mjs');

export const VERSION = '0.2.0';

/** The two files, compressed as little as possible. */
export async function buildBundle(
  folder: string,
  arch = 'x64',
): Promise<{ readonly archive: string; readonly debian: string }> {
  const { QUICK, buildNodeBundle } = bundleScripts;
  const [archive, debian] = await buildNodeBundle(folder, { arch, version: VERSION, compression: QUICK });
  if (!archive || !debian) throw new Error('two files were expected');
  return { archive: `${folder}/${archive.name}`, debian: `${folder}/${debian.name}` };
}
