/** What a node gets: Node, the program, the launchers, the unit, the configuration, completion, licences. As folders below a prefix. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from '../../support/paths.mjs';
import { nodeFor } from '../node.mjs';
import { assembleProgram } from '../program.mjs';
import { epochOf } from '../source.mjs';

const FILES = join(ROOT, 'deploy/node');
const PROGRAMS = ['junction', 'kubectl-junction'];
const COMPLETIONS = {
  bash: 'share/bash-completion/completions/junction',
  zsh: 'share/zsh/vendor-completions/_junction',
  fish: 'share/fish/vendor_completions.d/junction.fish',
};

/** A file of deploy/node with its `@NAMES@` replaced. */
export function template(name, values = {}) {
  return Object.entries(values).reduce(
    (text, [key, value]) => text.replaceAll(`@${key}@`, value),
    readFileSync(join(FILES, name), 'utf8'),
  );
}

/** Fills `folder` with all but the unit, which differs by where the launcher will be. */
export async function layOut(folder, { arch, version }) {
  const program = join(folder, 'lib/junction');
  await assembleProgram(program, { arch });
  const { binary, licence } = await nodeFor(arch);
  mkdirSync(join(program, 'bin'));
  copyFileSync(binary, join(program, 'bin/node'));
  for (const name of PROGRAMS) write(folder, `bin/${name}`, template('launcher', { PROGRAM: name }), 0o755);
  for (const [shell, path] of Object.entries(COMPLETIONS))
    write(folder, path, completionFor(shell, join(program, 'junction.js')));
  write(folder, 'share/man/man8/junction.8', template('junction.8', { VERSION: version }));
  write(folder, 'etc/junction/config.conf', template('config.conf'));
  write(folder, 'etc/default/junction', template('default'));
  const licences = join(folder, 'share/doc/junction');
  mkdirSync(licences, { recursive: true });
  for (const name of ['LICENSE', 'THIRD-PARTY-LICENSES'])
    renameSync(join(program, name), join(licences, name));
  copyFileSync(licence, join(licences, 'LICENSE.node'));
}

export function unitFor(launcher) {
  return template('junction.service').replaceAll('/usr/bin/junction', launcher);
}

/** The same for every architecture, so the Node that runs this script prints it. */
function completionFor(shell, program) {
  return execFileSync(process.execPath, [program, 'completion', shell], { encoding: 'utf8' });
}

export function write(folder, path, text, mode = 0o644) {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text, { mode });
}

/** Modes and times that do not depend on who builds when. */
export function settle(path) {
  const { mode } = statSync(path);
  const isFolder = statSync(path).isDirectory();
  if (isFolder) for (const name of readdirSync(path)) settle(join(path, name));
  chmodSync(path, isFolder || (mode & 0o100) !== 0 ? 0o755 : 0o644);
  const epoch = epochOf() ?? 0;
  utimesSync(path, epoch, epoch);
}

/** Every file below `folder`, by its path from there, in one order everywhere. */
export function filesBelow(folder) {
  return readdirSync(folder, { recursive: true })
    .filter((path) => statSync(join(folder, path)).isFile())
    .sort();
}
