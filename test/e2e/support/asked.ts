/** What a command of the program answers, in a host of the lab. */
import { expect } from 'vitest';
import type { Host } from '../../../lab/host.ts';
import { runProgram } from './program.ts';

export interface Answered {
  readonly exitCode: number | null;
  readonly text: string;
}

export async function ask(host: Host, ...args: readonly string[]): Promise<Answered> {
  const { exitCode, stdout, stderr } = await runProgram(host, ...args);
  return { exitCode, text: `${stdout}${stderr}` };
}

/** One answer has the cause and the cure. */
export function expectCauseAndCure(
  { text }: Answered,
  { cause, cure }: { readonly cause: string | RegExp; readonly cure: string | RegExp },
): void {
  if (typeof cause === 'string') expect(text).toContain(cause);
  else expect(text).toMatch(cause);
  if (typeof cure === 'string') expect(text).toContain(cure);
  else expect(text).toMatch(cure);
}

/** The cure of the finding whose text this is a part of, as it is printed. */
export function cureOf({ text }: Answered, finding: string): string {
  const after = text.slice(text.indexOf(finding));
  const cure = /^ +cure +(.+)$/m.exec(after)?.[1];
  if (!text.includes(finding) || cure === undefined) throw new Error(`no cure of ${finding} in:\n${text}`);
  return cure;
}
