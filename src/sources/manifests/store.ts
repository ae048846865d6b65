/** The manifests as they are on disk now, read again only where they changed. */
import { relative } from 'node:path';
import type { SourceProblem } from '../source.ts';
import type { World } from '../world.ts';
import type { ReadingOptions } from './chunkReading.ts';
import { contentProblem, readContent } from './content.ts';
import {
  type FileReading,
  type IgnoredObject,
  ignoredObjects,
  keepReading,
  readManifest,
} from './fileReading.ts';
import { type InForce, resolve, worldOf } from './resolve.ts';
import { type FoundFile, type PathProblem, type Scan, scan } from './scan.ts';

export interface Picture {
  readonly world: World;
  readonly problems: readonly SourceProblem[];
  readonly ignored: readonly IgnoredObject[];
  /** Documents of kinds that are no concern of a proxy. */
  readonly otherKinds: number;
  readonly scan: Scan;
  /** Roots that cannot be looked into. */
  readonly badRoots: readonly PathProblem[];
}

interface KnownFile {
  readonly stamp: string;
  /** Written long enough before it was read that an equal stamp means equal content. */
  readonly settled: boolean;
  readonly reading: FileReading;
}

/** Timestamps of a coarse file system; git calls files that are younger than this "racily clean". */
const SETTLING_MILLISECONDS = 2000;

export class ManifestStore {
  readonly #roots: readonly string[];
  readonly #options: ReadingOptions;
  #files: ReadonlyMap<string, KnownFile> = new Map();
  #inForce: InForce = new Map();

  constructor(roots: readonly string[], options: ReadingOptions = {}) {
    this.#roots = roots;
    this.#options = options;
  }

  async refresh(): Promise<Picture> {
    const found = await scan(this.#roots);
    const files = new Map<string, KnownFile>();
    for (const file of found.files) {
      const known = await this.#read(file);
      if (known !== undefined) files.set(file.path, known);
    }
    for (const [path, known] of this.#files) {
      if (!files.has(path) && found.problems.some((problem) => hides(problem, path))) files.set(path, known);
    }
    this.#files = files;
    const readings = [...files.values()].map(({ reading }) => reading);
    const { inForce, duplicates } = resolve(readings, this.#inForce);
    this.#inForce = inForce;
    return {
      world: worldOf(inForce),
      problems: [
        ...found.problems.map(pathProblem),
        ...found.emptyRoots.map(emptyRoot),
        ...readings.flatMap(({ problems }) => problems),
        ...duplicates,
      ],
      ignored: readings.flatMap(ignoredObjects),
      otherKinds: readings.reduce((sum, { otherKinds }) => sum + otherKinds, 0),
      scan: found,
      badRoots: found.problems.filter(({ path }) => this.#roots.includes(path)),
    };
  }

  async #read(file: FoundFile): Promise<KnownFile | undefined> {
    const before = this.#files.get(file.path);
    if (before?.settled && before.stamp === file.stamp) return before;
    const settled = Date.now() - file.modifiedAt > SETTLING_MILLISECONDS;
    const content = await readContent(file);
    if (content.kind === 'gone') return undefined;
    const reading =
      content.kind === 'text'
        ? readManifest(file.path, content.text, before?.reading, this.#options)
        : keepReading(contentProblem(file.path, content), before?.reading);
    return { stamp: file.stamp, settled, reading };
  }
}

function pathProblem({ path, message }: PathProblem): SourceProblem {
  return { severity: 'error', where: path, message };
}

function emptyRoot(path: string): SourceProblem {
  return { severity: 'warning', where: path, message: 'has no file whose name ends in .yaml, .yml or .json' };
}

function hides(problem: PathProblem, path: string): boolean {
  return problem.hidden && !relative(problem.path, path).startsWith('..');
}
