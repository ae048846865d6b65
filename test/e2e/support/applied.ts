/** Waits for what the proxy has received, by the way that its users have. */
import type { Status } from '../../../src/explain/status.ts';
import { ask, type Asked } from './ask.ts';
import { eventually } from './eventually.ts';
import type { Program } from './program.ts';

/** The status when everything is in the kernel; fails with what is still open. */
export async function applied(socket: string, more: Readonly<Record<string, string>> = {}): Promise<Status> {
  const query = new URLSearchParams({ wait: 'applied', timeout: '2m', ...more });
  const { status, text } = await ask(socket, `/v1/status?${query.toString()}`);
  if (status !== 200) throw new Error(`not applied: ${status}: ${text}`);
  return JSON.parse(text) as Status;
}

/** The same of a program that has just been started: its socket is there once it has read its configuration. */
export async function startedAndApplied(program: Program, socket: string): Promise<void> {
  let answer: Asked | undefined;
  await eventually(
    () => `an answer at ${socket}; it said:\n${program.log}`,
    async () => {
      if (!program.isRunning) throw new Error(`junction ended: ${program.log}`);
      answer = await ask(socket, '/v1/status?wait=applied&timeout=2m').catch(() => undefined);
      return answer !== undefined;
    },
  );
  if (answer?.status !== 200) throw new Error(`not applied: ${answer?.text ?? ''}\n${program.log}`);
}
