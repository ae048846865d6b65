/** `--node 24`: runs a script on another Node, and everything that it starts. */
import { chmodSync, constants, copyFileSync, linkSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeFor } from '../ship/node.mjs';
import { Failure, runAloud } from './run.mjs';

/** Splits the arguments: which Node, if any, and what remains. */
export function takeNode(args) {
  const at = args.findIndex((each) => each === '--node' || each.startsWith('--node='));
  if (at < 0) return { wanted: undefined, rest: args };
  const isOneWord = args[at].startsWith('--node=');
  const wanted = isOneWord ? args[at].slice('--node='.length) : args[at + 1];
  if (!wanted || wanted.startsWith('-'))
    throw new Failure('--node needs a line or a version of Node: npm test -- --node 24');
  return { wanted, rest: [...args.slice(0, at), ...args.slice(at + (isOneWord ? 1 : 2))] };
}

/**
 * Answers with the exit code. Children find this Node as process.execPath, and first in PATH; other users may run it,
 * wherever the checkout is.
 */
export async function runOnNode(wanted, argv, run = runAloud) {
  const { binary, version } = await nodeFor(process.arch, wanted);
  const folder = mkdtempSync(join(tmpdir(), 'junction-node-'));
  const node = join(folder, 'node');
  try {
    chmodSync(folder, 0o755);
    linkOrCopy(binary, node);
    console.log(`On Node ${version}:`);
    const PATH = `${folder}:${process.env.PATH ?? ''}`;
    return await run([node, ...argv], { env: { PATH, NODE: node, npm_node_execpath: node } });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Another file system takes no link. */
function linkOrCopy(from, to) {
  try {
    linkSync(from, to);
  } catch {
    copyFileSync(from, to, constants.COPYFILE_FICLONE);
  }
}
