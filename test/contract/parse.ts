/**
 * What a mode must do, as a table of steps. A file has cases; a case has a title and steps, one a line; indented lines belong to
 * the step above them. `#` begins a comment.
 *
 *     ## an endpoint is replaced [nftables ipvs]          the modes that it is for; without: all of them
 *     serve
 *       a/web 10.96.1.1 80@30080                          services and slices as in test/plan/given.ts,
 *       a/web-1 of web 8080 | pod-a | pod-c               endpoints are pods of the lab; `- a/web` deletes
 *     serve 1000 services                                 besides, of three endpoints each
 *     node zone=b | node addresses 192.0.2.10 …           this node changes
 *     restart                                             a new process, which remembers nothing
 *     rewrite                                             everything is written again
 *     retry                                               what failed or was refused is tried again
 *     kernel refuses 10.9.9.9                             every write with this text in it
 *     kernel refuses deletions | kernel refuses everything | kernel accepts everything
 *     kernel takes the next write and nobody hears of it  the answer is lost; the step after may fail or not
 *     kernel stops after 3 writes                         the process is killed there; `restart` starts the next one
 *     another program flushes everything                  a protected table refuses it; another is as before after a rewrite
 *     another program deletes service 10.96.1.1 | deletes the hooks | adds rules of its own
 *     connections end                                     those of IPVS to endpoints that are gone
 *     watch                                               no write from here on may drop or refuse one of these packets
 *       pod-a tcp 10.96.1.1:80
 *     expect packets                                      as in test/scenarios/packets.ts
 *       pod-b tcp 10.96.1.1:80 -> pod-a pod-c
 *     expect writes <= 4 | expect commits <= 1            of the step before
 *     expect nothing | incremental | full
 *     expect refused a/web/TCP | refused nothing
 *     expect failure ENOMEM                               of the step before: text of its error
 *     expect fresh                                        the kernel has what it would have after a first start
 */
export const STEPS = [
  'serve',
  'node zone=',
  'node addresses',
  'restart',
  'rewrite',
  'retry',
  'kernel refuses everything',
  'kernel refuses deletions',
  'kernel refuses',
  'kernel accepts everything',
  'kernel takes the next write and nobody hears of it',
  'kernel stops after',
  'another program flushes everything',
  'another program deletes service',
  'another program deletes the hooks',
  'another program adds rules of its own',
  'connections end',
  'watch',
  'expect packets',
  'expect writes <=',
  'expect commits <=',
  'expect nothing',
  'expect incremental',
  'expect full',
  'expect refused',
  'expect failure',
  'expect fresh',
] as const;

export type StepKind = (typeof STEPS)[number];

export interface Step {
  readonly kind: StepKind;
  /** The rest of its line. */
  readonly argument: string;
  /** The indented lines below it. */
  readonly lines: readonly string[];
  /** `drift.steps:12` */
  readonly place: string;
}

export interface Case {
  readonly title: string;
  /** Words in brackets behind the title. */
  readonly only: ReadonlySet<string>;
  readonly steps: readonly Step[];
  readonly place: string;
}

const TITLE = /^## (.+?)(?:\s+\[([\w\s-]+)\])?$/;

export function parseSteps(file: string, text: string): readonly Case[] {
  const cases: { title: string; only: ReadonlySet<string>; steps: Step[]; place: string }[] = [];
  let lines: string[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    const place = `${file}:${index + 1}`;
    const trimmed = line.replace(/(^|\s)#(?!#).*$/, '').trim();
    if (trimmed === '') continue;
    const title = TITLE.exec(trimmed);
    const last = cases.at(-1);
    if (title) {
      const only = new Set(title[2]?.split(/\s+/));
      cases.push({ title: title[1] ?? '', only, steps: [], place });
    } else if (!last) throw new Error(`${place}: a case begins with "## title"`);
    else if (/^\s/.test(line)) {
      if (last.steps.length === 0) throw new Error(`${place}: no step above this line`);
      lines.push(trimmed);
    } else {
      lines = [];
      last.steps.push({ ...parseStep(trimmed, place), lines, place });
    }
  }
  return cases;
}

function parseStep(text: string, place: string): Pick<Step, 'kind' | 'argument'> {
  const kind = STEPS.find(
    (known) => text === known || text.startsWith(known.endsWith('=') ? known : `${known} `),
  );
  if (kind === undefined) throw new Error(`${place}: unknown step "${text}"`);
  return { kind, argument: text.slice(kind.length).trim() };
}
