/** Runs a command in a pod by `kubectl exec`, which knows the way there and has the user's credentials. */
import { spawn } from 'node:child_process';
import { JunctionError } from '../errors.ts';
import { notStarted } from './processes.ts';

export interface Kubectl {
  /** `--kubeconfig`, `--context`: what kubectl does not find by itself. */
  readonly flags: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

interface PodCommand {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly command: readonly string[];
  readonly out: (chunk: Buffer) => void;
  /** In whole lines. */
  readonly err: (text: string) => void;
}

/** How the last line of standard error begins where kubectl itself has something to say. */
const OF_KUBECTL =
  /^(?:command terminated|error: |Error from server|Unable to connect|The connection to the )/;
/** The command ran, and kubectl ends with its exit code. */
const TERMINATED = /^command terminated with exit code \d+\n?$/;

/** Returns the exit code of the command. Throws where it could not be run, or nothing is known of its end. */
export async function execInPod(
  { flags, env }: Kubectl,
  { namespace, pod, container, command, out, err }: PodCommand,
  signal: AbortSignal,
): Promise<number> {
  signal.throwIfAborted();
  const place = ['exec', '--namespace', namespace, pod, '--container', container];
  const child = spawn('kubectl', [...flags, ...place, '--', ...command], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines = new ErrorLines(err);
  child.stdout.on('data', out);
  child.stderr.setEncoding('utf8').on('data', (text: string) => lines.add(text));
  let onAbort = (): void => undefined;
  try {
    const [code, endedBy] = await new Promise<[number | null, string | null]>((resolve, reject) => {
      onAbort = () => reject(signal.reason);
      signal.addEventListener('abort', onAbort);
      child.once('error', (error) => reject(notStarted(['kubectl'], error)));
      child.once('close', (exitCode, exitSignal) => resolve([exitCode, exitSignal]));
    });
    const last = lines.end();
    if (code === 0 || (code !== null && TERMINATED.test(last))) return code;
    const reason = last.trim() || `kubectl ended with ${code ?? String(endedBy)} and gave no reason`;
    throw failed(place.join(' '), namespace, reason);
  } finally {
    signal.removeEventListener('abort', onAbort);
    child.kill('SIGKILL');
    child.stdout.destroy();
    child.stderr.destroy();
  }
}

function failed(place: string, namespace: string, reason: string): JunctionError {
  const hint = reason.includes('(Forbidden)')
    ? `The user needs get of pods and create of pods/exec in namespace ${namespace}; docs/explain.md has a Role.`
    : `See what kubectl itself says: kubectl ${place} -- junction version`;
  return new JunctionError('EXEC_FAILED', `kubectl ${place}: ${reason}`, { hint });
}

/** Passes lines on, but for the last one where it is kubectl's own. */
class ErrorLines {
  readonly #pass: (text: string) => void;
  #rest = '';
  #own = '';

  constructor(pass: (text: string) => void) {
    this.#pass = pass;
  }

  add(text: string): void {
    const lines = (this.#rest + text).split(/(?<=\n)/);
    this.#rest = lines.at(-1)?.endsWith('\n') ? '' : (lines.pop() ?? '');
    for (const line of lines) this.#line(line);
  }

  end(): string {
    if (this.#rest !== '') this.#line(this.#rest);
    return this.#own;
  }

  #line(line: string): void {
    if (this.#own !== '') this.#pass(this.#own);
    this.#own = OF_KUBECTL.test(line) ? line : '';
    if (this.#own === '') this.#pass(line);
  }
}
