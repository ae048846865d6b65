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
 *     connections open                                    and stay open; `expect connections held` sends on each once more
 *       pod-b tcp 10.96.1.1:80
 *     connections end
 *     watch                                               no write from here on may drop or refuse one of these packets,
 *       pod-a tcp 10.96.1.1:80 -> pod-a                   nor pass it by, unless its row says `-> pass`
 *     expect packets                                      as in test/scenarios/packets.ts
 *       pod-b tcp 10.96.1.1:80 -> pod-a pod-c
 *     expect writes <= 4 | expect commits <= 1            of the step before
 *     expect nothing | incremental | full
 *     expect refused a/web/TCP | refused nothing
 *     expect failure killed                               of the step before: text of its error; without: any, or a refusal
 *     expect fresh                                        the kernel has what it would have after a first start
 *
 * In brackets too: `IPv6`; `memory` for what only a kernel in memory can show; and `guest` for what a real kernel with IPVS is
 * to show as well: there is one in the emulated machine alone, which is slow.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Family } from '../../src/model/ip.ts';

const STEPS = [
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
  'connections open',
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
  'expect connections held',
  'expect fresh',
] as const;

type StepKind = (typeof STEPS)[number];

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
  readonly family: Family;
  /** Empty: every mode. */
  readonly modes: readonly Mode[];
  /** It needs a kernel in memory. */
  readonly inMemory: boolean;
  readonly inGuest: boolean;
  readonly steps: readonly Step[];
  readonly place: string;
}

const MODES = ['iptables', 'ipvs', 'nftables'] as const;
type Mode = (typeof MODES)[number];

const FOLDER = foundAbove(import.meta.dirname, 'test/contract/steps');

/** Programs that are bundled are run from elsewhere in this tree. */
function foundAbove(folder: string, path: string): string {
  const found = join(folder, path);
  if (existsSync(found)) return found;
  if (folder === '/') throw new Error(`no folder ${path}`);
  return foundAbove(dirname(folder), path);
}

/** In the order of the files. `real`: those for which a real kernel will do; `guest`: those that the emulated machine runs. */
export function casesFor(mode: string, on: 'memory' | 'real' | 'guest' = 'memory'): readonly Case[] {
  return readdirSync(FOLDER)
    .sort()
    .flatMap((file) => parseSteps(file, readFileSync(join(FOLDER, file), 'utf8')))
    .filter(({ modes }) => modes.length === 0 || modes.some((each) => each === mode))
    .filter(({ inMemory, inGuest }) => on === 'memory' || (on === 'guest' ? inGuest : !inMemory));
}

/** Those in which it matters whether other programs can change what is ours. */
export function casesWithOthers(mode: string, on: 'memory' | 'real' = 'memory'): readonly Case[] {
  return casesFor(mode, on).filter(({ steps }) =>
    steps.some(({ kind }) => kind.startsWith('another program')),
  );
}

const TITLE = /^## (.+?)(?:\s+\[([\w\s-]+)\])?$/;

export function parseSteps(file: string, text: string): readonly Case[] {
  const cases: (Case & { readonly steps: Step[] })[] = [];
  let lines: string[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    const place = `${file}:${index + 1}`;
    const trimmed = line.replace(/(^|\s)#(?!#).*$/, '').trim();
    if (trimmed === '') continue;
    const title = TITLE.exec(trimmed);
    const last = cases.at(-1);
    if (title) {
      cases.push({ title: title[1] ?? '', ...parseWords(title[2] ?? '', place), steps: [], place });
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

/** The words in brackets behind a title. */
function parseWords(text: string, place: string): Pick<Case, 'family' | 'modes' | 'inMemory' | 'inGuest'> {
  const words = text.split(/\s+/).filter((word) => word !== '');
  const modes = MODES.filter((mode) => words.includes(mode));
  const unknown = words.find((word) => ![...MODES, 'IPv6', 'memory', 'guest'].includes(word));
  if (unknown !== undefined) throw new Error(`${place}: unknown word "${unknown}"`);
  return {
    family: words.includes('IPv6') ? 'IPv6' : 'IPv4',
    modes,
    inMemory: words.includes('memory'),
    inGuest: words.includes('guest'),
  };
}

function parseStep(text: string, place: string): Pick<Step, 'kind' | 'argument'> {
  const kind = STEPS.find(
    (known) => text === known || text.startsWith(known.endsWith('=') ? known : `${known} `),
  );
  if (kind === undefined) throw new Error(`${place}: unknown step "${text}"`);
  return { kind, argument: text.slice(kind.length).trim() };
}
