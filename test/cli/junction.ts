/** Runs the command line in this process, and keeps what it prints. */
import { vi } from 'vitest';
import { main } from '../../src/cli/main.ts';

export interface Run {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export async function junction(...args: readonly string[]): Promise<Run> {
  let out = '';
  let err = '';
  const stdout = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    out += String(text);
    return true;
  });
  const stderr = vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    err += String(text);
    return true;
  });
  try {
    const code = await main(args);
    return { code, out, err };
  } finally {
    stdout.mockRestore();
    stderr.mockRestore();
  }
}
