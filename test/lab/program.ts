/** A program that owns a lab, with the agent beside it, where any user can read both. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { chmodSync, cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { testProgram } from '../support/programs.ts';

interface Built {
  readonly file: string;
  remove(): void;
}

export function copyOwner(): Built {
  const folder = mkdtempSync(join(tmpdir(), 'junction-lab-'));
  chmodSync(folder, 0o755); // another user runs it
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  for (const name of ['owner', 'lab-agent'] as const)
    cpSync(testProgram(name), join(folder, `${name}.js`), { dereference: true });
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
