/** The source files as text, and what each imports. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');

export interface SourceFile {
  /** `src/model/ip.ts` */
  readonly path: string;
  readonly text: string;
  /** `src/model/ip.ts` for files of ours, otherwise the name: `node:fs`, `yaml`. */
  readonly imports: readonly string[];
}

export function filesUnder(folder: string): readonly SourceFile[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1))
    .map(readSource)
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

const IMPORT = /(?:\bfrom\s+|\bimport\s+|\bimport\(\s*|\brequire\(\s*)(['"])([^'"\n]+)\1/g;

function readSource(path: string): SourceFile {
  const text = readFileSync(join(ROOT, path), 'utf8');
  const imports = [...text.matchAll(IMPORT)].map((match) => {
    const name = match[2] ?? '';
    return name.startsWith('.') ? normalize(join(dirname(path), name)) : name;
  });
  return { path, text, imports };
}

/** Without comments and the insides of strings, so that words in them do not count. */
export function codeOf({ text }: SourceFile): string {
  return text
    .replaceAll(/\/\*[\s\S]*?\*\//g, '')
    .replaceAll(/^\s*\/\/.*$/gm, '')
    .replaceAll(/(\s)\/\/ .*$/gm, '$1')
    .replaceAll(/'(?:[^'\\\n]|\\.)*'/g, "''")
    .replaceAll(/"(?:[^"\\\n]|\\.)*"/g, '""');
}

/**
 * `model` for `src/model/ip.ts`, `rules` for what is pure of a mode, `reconciler` for what is pure of the proxy and used by
 * all modes, `lab` and `page` for all of them, `errors.ts` for `src/errors.ts`.
 */
export function roomOf(path: string): string {
  if (path.startsWith('lab/')) return 'lab';
  if (path.startsWith('page/')) return 'page';
  if (
    /^src\/modes\/(?:\w+\/(?:rules\/|reconcile\.ts)|(?:walk|walkOutcome|path|kernelReader|deviations)\.ts)/.test(
      path,
    )
  )
    return 'rules';
  if (/^src\/proxy\/(?:reconciler|report|retryDelay|syncGate)\.ts/.test(path)) return 'reconciler';
  return path.split('/')[1] ?? path;
}
