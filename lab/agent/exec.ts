import { type ChildProcess, spawn } from 'node:child_process';
import type { Command, CommandResult } from '../protocol.ts';

const running = new Set<ChildProcess>();

export function exec(command: Command): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const [program = '', ...args] = command.argv;
    // A process group of its own, so that ending it ends what it started too.
    const child = spawn(program, args, { detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    running.add(child);
    const stdout = collect(child.stdout);
    const stderr = collect(child.stderr);
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      kill(child);
    }, command.timeoutMs);
    child.on('error', (error) => {
      clearTimeout(timer);
      running.delete(child);
      reject(new Error(`cannot run ${program}: ${error.message}`));
    });
    child.on('close', (exitCode) => {
      clearTimeout(timer);
      running.delete(child);
      resolve({ exitCode, stdout: stdout(), stderr: stderr(), timedOut });
    });
    child.stdin.on('error', () => {}); // a command need not read what it is given
    child.stdin.end(command.stdin ?? '');
  });
}

export function killCommands(): void {
  for (const child of running) kill(child);
}

function kill(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // it ended by itself just now
  }
}

function collect(stream: NodeJS.ReadableStream): () => string {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString();
}
