/** `junction status`: how the running proxy is. */
import type { ParsedFlags } from '../config/commandLine.ts';
import type { Colour } from '../text/paint.ts';
import { wrap } from '../text/wrap.ts';
import type { FamilyStatus, SourceStatus, Status, SyncStatus } from '../explain/status.ts';
import type { Finding } from '../explain/types.ts';
import { ago, counted, durationText, grouped } from '../text/ages.ts';
import { showAnswer, type Viewer } from './answerOutput.ts';
import { openAnswers } from './answers.ts';
import type { Output } from './output.ts';
import { cellOf } from './table.ts';

export async function statusCommand(parsed: ParsedFlags, output: Output): Promise<number> {
  const answers = await openAnswers(parsed, output);
  return showAnswer(parsed, output, async () => {
    const answer = await answers.status();
    const isWrong = answer.findings.some(({ severity }) => severity === 'error');
    return { answer, text: (viewer) => statusLines(answer, viewer), exitCode: isWrong ? 1 : 0 };
  });
}

/** A name before each line of a part, which then stand below each other. */
type Part = readonly [name: string, lines: readonly string[]];

const NAME_WIDTH = 14;
const INDENT = '  ';

function* statusLines(status: Status, { columns, paint }: Viewer): Generator<string> {
  const { version, node, mode, layout, processId, startedAt, now } = status;
  const errors = status.findings.filter(({ severity }) => severity === 'error').length;
  const state = errors > 0 ? paint('red', counted(errors, 'error')) : paint('green', 'ok');
  const how = mode === 'iptables' ? `${mode} mode, layout ${layout}` : `${mode} mode`;
  yield `${paint('bold', cellOf(`Junction v${version.replace(/^v/, '')} on ${node}`))}, ${cellOf(how)}, process ${processId} for ${durationText(now - startedAt)}: ${state}\n`;
  const parts: readonly Part[] = [
    sourcePart(status.source, now),
    ...status.families.flatMap((family) => familyParts(family, now)),
    ...status.leftOut.map(
      ({ family, reason, since }): Part => [
        family,
        [`not served for ${durationText(now - since)}: ${reason}`],
      ],
    ),
    ...conntrackPart(status),
  ];
  const room = Math.max(40, columns - NAME_WIDTH - INDENT.length);
  for (const [name, lines] of parts) {
    const wrapped = lines.flatMap((line) => wrap(cellOf(line), room));
    for (const [index, line] of wrapped.entries())
      yield `${INDENT}${(index === 0 ? name : '').padEnd(NAME_WIDTH)}${line}\n`;
  }
  for (const finding of status.findings) {
    const [colour, sign] = SIGNS[finding.severity];
    const [first = '', ...rest] = findingLines(finding).flatMap((line) => wrap(cellOf(line), columns - 4));
    yield `${INDENT}${paint(colour, sign)} ${first}\n`;
    for (const line of rest) yield `${INDENT}  ${line}\n`;
  }
}

const SIGNS: Readonly<Record<Finding['severity'], readonly [Colour, string]>> = {
  error: ['red', '✗'],
  warning: ['yellow', '!'],
  info: ['cyan', 'i'],
};

function findingLines({ text, evidence, consequence, cure }: Finding): readonly string[] {
  return [
    text,
    ...(evidence === undefined ? [] : [evidence]),
    ...(consequence === undefined ? [] : [consequence]),
    ...(cure === undefined ? [] : [`what to do: ${cure}`]),
  ];
}

function sourcePart(source: SourceStatus, now: number): Part {
  const last =
    source.lastEventAt === undefined ? 'no event yet' : `last event ${ago(source.lastEventAt, now)}`;
  if (source.kind === 'manifests')
    return ['manifests', [`${source.paths.join(', ')}; ${last}`, ...source.problems]];
  const failing = source.resources.flatMap(({ resource, hasListed, failingSince, reason }) => {
    if (failingSince === undefined) return hasListed ? [] : [`${resource} are not listed yet`];
    return [
      `${resource} cannot be ${hasListed ? 'watched' : 'listed'} since ${failingSince}: ${reason ?? ''}`,
    ];
  });
  return [
    'API server',
    [`${source.server}; ${last}, ${counted(source.reconnects, 'reconnect')}`, ...failing],
  ];
}

function familyParts(family: FamilyStatus, now: number): readonly Part[] {
  const { services, servicePorts, endpoints, isServed, lastSync, lastVerification } = family;
  const { refused, foreignChanges, proof, history } = family;
  const size = `${counted(services, 'service')} with ${counted(servicePorts, 'port')}, ${counted(endpoints, 'endpoint')}`;
  const verified = lastVerification
    ? `${ago(lastVerification.at, now)} in ${durationText(lastVerification.ms)}: ${lastVerification.isUnchanged ? 'as it should be' : 'brought up to date'}`
    : 'not yet';
  return [
    [family.family, [isServed ? size : `${size}; no rules are written yet`]],
    ['  last sync', lastSync ? syncLines(lastSync, now) : ['none yet']],
    ['  kernel read', [family.isNotified ? `${verified}; the kernel notifies of changes` : verified]],
    ...some(
      '  refused',
      refused.map(({ servicePort, error }) => `${servicePort}: ${error}`),
    ),
    ...some('  others', foreignLines(foreignChanges, now)),
    ['  proof', proofLines(proof)],
    [
      '  history',
      [
        `${grouped(history.records)} of at most ${counted(history.mostRecords, 'change')}, since ${ago(history.since, now)}`,
      ],
    ],
  ];
}

function syncLines(
  { at, kind, cause, ms, planMs, writeMs, commits, objects, error }: SyncStatus,
  now: number,
): readonly string[] {
  const stages =
    planMs === undefined || writeMs === undefined
      ? ''
      : ` (plan ${durationText(planMs)}, write ${durationText(writeMs)})`;
  const what = `${kind}, ${counted(commits, 'commit')}, ${counted(objects, 'object')}`;
  return [
    `${ago(at, now)} in ${durationText(ms)}${stages}: ${what}; ${cause}`,
    ...(error === undefined ? [] : [`failed: ${error}`]),
  ];
}

function foreignLines(
  { count, byProgram, last }: FamilyStatus['foreignChanges'],
  now: number,
): readonly string[] {
  if (count === 0) return [];
  const programs = Object.entries(byProgram).map(([program, times]) => `${program} ${grouped(times)}`);
  const repaired =
    last?.repairedMs === undefined ? 'not repaired yet' : `repaired in ${durationText(last.repairedMs)}`;
  return [
    `${counted(count, 'change')} of our rules by other programs (${programs.join(', ')})`,
    ...(last
      ? [`the last ${ago(last.at, now)} by ${last.program}: ${last.objects.join(', ')}; ${repaired}`]
      : []),
  ];
}

function proofLines({
  isOn,
  packets,
  disagreements,
  disagreementCount,
}: FamilyStatus['proof']): readonly string[] {
  if (!isOn) return ['off (--proof)'];
  const walked = `${counted(packets, 'packet')} walked through the kernel's rules`;
  if (disagreementCount === 0) return [`${walked}, all as planned`];
  return [
    `${walked}, ${grouped(disagreementCount)} not as planned, ${grouped(disagreements.length)} still`,
    ...disagreements.map(
      ({ packet, planned, kernel }) => `${packet}: planned ${planned}, in the kernel ${kernel}`,
    ),
  ];
}

function conntrackPart({ conntrack }: Status): readonly Part[] {
  if (!conntrack) return [];
  const { count, max } = conntrack;
  const share = max === 0 ? '' : ` (${Math.round((100 * count) / max)} %)`;
  return [['conntrack', [`${grouped(count)} of ${grouped(max)} entries${share}`]]];
}

function some(name: string, lines: readonly string[]): readonly Part[] {
  return lines.length === 0 ? [] : [[name, lines]];
}
