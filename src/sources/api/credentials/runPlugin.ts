/** Starts a credential plugin. */
import { execFile } from 'node:child_process';

export interface PluginCall {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

export type PluginResult =
  | { readonly kind: 'ran'; readonly code: number; readonly stdout: string; readonly stderr: string }
  /** It could not be started, or was killed. */
  | { readonly kind: 'failed'; readonly reason: string; readonly isMissing: boolean };

export type PluginRunner = (call: PluginCall) => Promise<PluginResult>;

const TIMEOUT_MS = 60_000;
const MOST_OUTPUT_BYTES = 1024 * 1024;

export const runPlugin: PluginRunner = ({ command, args, env }) =>
  new Promise((resolve) => {
    const options = { env: { ...env }, timeout: TIMEOUT_MS, maxBuffer: MOST_OUTPUT_BYTES };
    const child = execFile(command, [...args], options, (error, stdout, stderr) => {
      const code = error?.code;
      if (error === null) resolve({ kind: 'ran', code: 0, stdout, stderr });
      else if (typeof code === 'number') resolve({ kind: 'ran', code, stdout, stderr });
      else if (error.killed === true)
        resolve({ kind: 'failed', reason: 'it took too long', isMissing: false });
      else resolve({ kind: 'failed', reason: String(code ?? error.signal), isMissing: code === 'ENOENT' });
    });
    // Nobody sits at the terminal of a node: a plugin that asks must find the end of its input.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end();
  });
