/** Programs that own a lab, built as the product is built: a bundle with the agent beside it. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

export interface Built {
  readonly file: string;
  remove(): void;
}

export async function buildOwner(): Promise<Built> {
  const folder = mkdtempSync(join(tmpdir(), 'junction-lab-'));
  chmodSync(folder, 0o755); // another user runs it
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  await build({
    entryPoints: {
      owner: fileURLToPath(new URL('./owner.ts', import.meta.url)),
      'lab-agent': fileURLToPath(new URL('../../lab/agent/main.ts', import.meta.url)),
    },
    outdir: folder,
    bundle: true,
    platform: 'node',
    format: 'esm',
    external: ['esbuild'],
    logLevel: 'silent',
  });
  return { file: join(folder, 'owner.js'), remove: () => rmSync(folder, { recursive: true }) };
}

export type Program = ChildProcessByStdio<null, Readable, Readable>;

export function startProgram(argv: readonly string[]): Program {
  const [command = '', ...args] = argv;
  return spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
}

/** The program's first line; fails with what it complained about when it ends without one. */
export function firstLine(program: Program): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    let complaints = '';
    program.stderr.on('data', (chunk: Buffer) => {
      complaints += chunk.toString();
    });
    program.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      const [line, rest] = text.split('\n', 2);
      if (rest !== undefined) resolve(line ?? '');
    });
    program.once('close', (code) => reject(new Error(`ended with ${code} and said: ${complaints}`)));
  });
}
