import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The build puts the agent beside the bundle, or one folder up when the lab ends up in a folder of chunks. */
const BUILT_AGENTS = ['./lab-agent.js', '../lab-agent.js'];

let program: Promise<readonly string[]> | undefined;

/** What to put after `node` to run the agent: its built file, or its source compiled now. */
export function agentProgram(): Promise<readonly string[]> {
  program ??= findOrCompile();
  return program;
}

async function findOrCompile(): Promise<readonly string[]> {
  for (const path of BUILT_AGENTS) {
    const file = fileURLToPath(new URL(path, import.meta.url));
    if (existsSync(file)) return [file];
  }
  const { build } = await import('esbuild');
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('./agent/main.ts', import.meta.url))],
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    minify: true,
    write: false,
    logLevel: 'silent',
  });
  // Handed over as an argument: a file would have to be cleaned up, and nobody does that after a crash.
  return ['--input-type=module', '--eval', outputFiles[0]?.text ?? '', '--'];
}
