/**
 * Where the files of a release come from: an in-toto statement with SLSA's predicate
 * (https://slsa.dev/spec/v1.0/provenance). It is not signed: whoever publishes the files signs them.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';

/** All that decides which packages a release is made of. */
const LOCKS = /(^|\/)(package-lock\.json|[^/]+\.lock)$/;

const TOOLS = {
  npm: ['npm', '--version'],
  git: ['git', '--version'],
  mmdebstrap: ['mmdebstrap', '--version'],
  'dpkg-deb': ['dpkg-deb', '--version'],
  tar: ['tar', '--version'],
  gzip: ['gzip', '--version'],
};

export async function sha256Of(path) {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

/** `files`: paths with their digests. `root`: the clone that they were built in. */
export function provenanceOf({ version, commit, root, files, started, finished }) {
  const locks = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' })
    .split('\n')
    .filter((path) => LOCKS.test(path));
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: files.map(({ path, sha256 }) => ({ name: basename(path), digest: { sha256 } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'urn:junction:npm-run-release',
        externalParameters: { version },
        internalParameters: { node: process.version, arch: process.arch, tools: toolVersions() },
        resolvedDependencies: [
          { name: 'source', digest: { gitCommit: commit } },
          ...locks.map((path) => ({
            name: path,
            digest: {
              sha256: createHash('sha256')
                .update(readFileSync(join(root, path)))
                .digest('hex'),
            },
          })),
        ],
      },
      runDetails: {
        builder: { id: 'urn:junction:npm-run-release' },
        metadata: { startedOn: started.toISOString(), finishedOn: finished.toISOString() },
      },
    },
  };
}

function toolVersions() {
  return Object.fromEntries(
    Object.entries(TOOLS).map(([name, [command, ...args]]) => [name, firstLineOf(command, args)]),
  );
}

function firstLineOf(command, args) {
  try {
    return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).split(
      '\n',
    )[0];
  } catch {
    return 'absent';
  }
}
