/** Runs a command in a pod, by the subresource `exec`, over a WebSocket with the channels that Kubernetes gives it. */
import { JunctionError } from '../../errors.ts';
import { isMap, ownField, ownText } from '../../text/cursor.ts';
import type { ApiClient } from './client.ts';
import { failureOfStatus } from './failure.ts';

/** v5 (Kubernetes 1.30) can close standard input, which nobody has here; v4 is the one before. */
const PROTOCOLS = ['v5.channel.k8s.io', 'v4.channel.k8s.io'];
const CHANNELS = { stdout: 1, stderr: 2, status: 3 } as const;
/** Load balancers forget a connection on which nothing comes for minutes. */
const PING_MS = 20_000;

interface PodCommand {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly command: readonly string[];
  readonly out: (chunk: Buffer) => void;
  readonly err: (chunk: Buffer) => void;
}

/** Returns the exit code of the command. Throws where it could not be run, or nothing is known of its end. */
export async function execInPod(client: ApiClient, run: PodCommand, signal: AbortSignal): Promise<number> {
  const { namespace, pod, container, command, out, err } = run;
  const query = new URLSearchParams({ container, stdout: 'true', stderr: 'true' });
  for (const word of command) query.append('command', word);
  const what = `running a command in pod ${namespace}/${pod}`;
  const path = `/api/v1/namespaces/${namespace}/pods/${pod}/exec?${query.toString()}`;
  const answer = await client.upgrade(path, PROTOCOLS, signal);
  if (!answer.connection) throw failureOfStatus(readStatus(answer.text), answer.status, what, undefined);
  const { connection } = answer;
  const onAbort = (): void => connection.close();
  signal.addEventListener('abort', onAbort);
  const pings = setInterval(() => connection.ping(), PING_MS);
  let status: unknown;
  try {
    for await (const message of connection.messages()) {
      const payload = message.subarray(1);
      // An empty message says that the streams are there.
      if (payload.length === 0) continue;
      if (message[0] === CHANNELS.stdout) out(payload);
      else if (message[0] === CHANNELS.stderr) err(payload);
      else if (message[0] === CHANNELS.status) status = readStatus(payload.toString('utf8'));
    }
  } catch (error) {
    signal.throwIfAborted();
    if (status === undefined) throw lost(what, error);
  } finally {
    clearInterval(pings);
    signal.removeEventListener('abort', onAbort);
  }
  signal.throwIfAborted();
  if (status === undefined) throw lost(what, new Error(connection.closed.reason || 'the connection ended'));
  return exitCodeOf(status, what);
}

function readStatus(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return { message: text.slice(0, 500) };
  }
}

/** A status `Success`, or a failure with the exit code among its causes. */
function exitCodeOf(status: unknown, what: string): number {
  if (ownText(status, 'status') === 'Success') return 0;
  const causes = ownField(ownField(status, 'details'), 'causes');
  const exit = (Array.isArray(causes) ? causes : []).find(
    (cause): cause is object => isMap(cause) && cause['reason'] === 'ExitCode',
  );
  const code = Number(ownText(exit, 'message'));
  if (ownText(status, 'reason') === 'NonZeroExitCode' && Number.isInteger(code) && code > 0) return code;
  throw new JunctionError(
    'EXEC_FAILED',
    `${what}: ${ownText(status, 'message') || 'it could not be started'}`,
  );
}

function lost(what: string, cause: unknown): JunctionError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new JunctionError('EXEC_FAILED', `${what}: the connection was lost: ${reason}`, { cause });
}
