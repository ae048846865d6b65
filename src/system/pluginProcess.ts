/**
 * Runs a credential plugin so that it always ends: after a time limit its whole process group is ended, first with
 * SIGTERM, then with SIGKILL. A plugin that ignores SIGTERM held up every request to the API server.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { errorCode } from '../errors.ts';
import { endGroup, trackChild } from './processes.ts';

export interface PluginCall {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

export type PluginResult =
  | { readonly kind: 'ran'; readonly code: number; readonly stdout: string; readonly stderr: string }
  /** It could not be started, or was killed. */
  | { readonly kind: 'failed'; readonly reason: string; readonly isMissing: boolean };

/** Plugins ask servers on other continents, and some wait for a network that is still coming up. */
const TIMEOUT_MS = 60_000;
const MOST_OUTPUT_BYTES = 1024 * 1024;
/** Between its end and the end of its output. */
const PIPES_GRACE_MS = 1000;

export async function runPlugin(
  { command, args, env }: PluginCall,
  timeoutMs = TIMEOUT_MS,
): Promise<PluginResult> {
  let child: ChildProcess;
  try {
    // Nobody sits at the terminal of a node: a plugin that asks must find the end of its input.
    child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  } catch (error) {
    return failed(error);
  }
  trackChild(child, command);
  let timer: NodeJS.Timeout | undefined;
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  try {
    return await new Promise<PluginResult>((resolve) => {
      child.once('error', (error) => resolve(failed(error)));
      let isLate = false;
      const end = (code: number | null, signal: NodeJS.Signals | null): void => {
        if (isLate) return; // ended by us, as is said below
        const text = stdout();
        if (text === undefined) resolve(refused(`it printed more than ${MOST_OUTPUT_BYTES} bytes`));
        else if (code === null) resolve(refused(`it was ended by ${String(signal)}`));
        else resolve({ kind: 'ran', code, stdout: text, stderr: stderr() ?? '' });
      };
      child.once('close', end);
      // A program that it left behind may keep the pipes open.
      child.once('exit', (code, signal) => {
        clearTimeout(timer);
        timer = setTimeout(() => end(code, signal), PIPES_GRACE_MS);
      });
      timer = setTimeout(() => {
        isLate = true;
        const reason = `it did not end within ${timeoutMs / 1000} s, and was killed`;
        void endGroup(child).then(() => resolve(refused(reason)));
      }, timeoutMs);
    });
  } finally {
    clearTimeout(timer);
    child.stdout?.destroy();
    child.stderr?.destroy();
  }
}

/** Nothing when there was too much of it. */
function collect(stream: Readable | null): () => string | undefined {
  const chunks: Buffer[] = [];
  let length = 0;
  stream
    ?.on('error', () => undefined)
    .on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length <= MOST_OUTPUT_BYTES) chunks.push(chunk);
    });
  return () => (length > MOST_OUTPUT_BYTES ? undefined : Buffer.concat(chunks).toString('utf8'));
}

function failed(error: unknown): PluginResult {
  const code = errorCode(error);
  return { kind: 'failed', reason: code ?? String(error), isMissing: code === 'ENOENT' };
}

function refused(reason: string): PluginResult {
  return { kind: 'failed', reason, isMissing: false };
}
