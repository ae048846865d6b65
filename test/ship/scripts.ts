/** The scripts of the release, which are JavaScript, with the types that tests need. */
interface NodeLock {
  readonly ships: string;
  readonly lines: Readonly<
    Record<string, { readonly version: string; readonly integrity: Readonly<Record<string, string>> }>
  >;
}

interface Compression {
  readonly archive: string;
  readonly package: readonly string[];
}

type Run = (argv: readonly string[], options: { readonly env: NodeJS.ProcessEnv }) => Promise<number>;

interface Scripts {
  'ship/node': {
    nodeLock: () => NodeLock;
    nodeFor: (arch: string) => Promise<Readonly<Record<'binary' | 'licence' | 'version', string>>>;
    fetchNode: (folder: string, arch: string, version: string, integrity?: string) => Promise<void>;
  };
  'ship/program': {
    assembleProgram: (folder: string, options?: { readonly arch?: string }) => Promise<void>;
  };
  'ship/cache': { cached: (name: string, make: (folder: string) => Promise<void>) => Promise<string> };
  'ship/image/debian': { readonly MIRROR: string; readonly KEYRING: string };
  'ship/bundle/bundle': {
    readonly QUICK: Compression;
    buildNodeBundle: (
      destination: string,
      options: { readonly arch: string; readonly version: string; readonly compression: Compression },
    ) => Promise<readonly { readonly name: string; readonly size: number }[]>;
  };
  'ship/runtime': { runtimePackages: (arch: string) => Promise<string> };
  'support/otherNode': {
    takeNode: (args: readonly string[]) => { readonly wanted?: string; readonly rest: readonly string[] };
    runOnNode: (wanted: string, argv: readonly string[], run: Run) => Promise<number>;
  };
  'support/nodeVersion': { checkNode: (version: string, warn: (text: string) => void) => void };
}

export async function script<K extends keyof Scripts>(name: K): Promise<Scripts[K]> {
  return (await import(new URL(`../../scripts/${name}.mjs`, import.meta.url).href)) as Scripts[K];
}
