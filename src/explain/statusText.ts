/** The status of a running proxy in words: what `status` says, part by part. */
import { ago, counted, durationText, grouped } from '../text/ages.ts';
import { stageOf } from './statusFindings.ts';
import type { FamilyStatus, ResourceStatus, SourceStatus, Status, SyncStatus } from './status.ts';

export interface StatusPart {
  /** `API server`, `IPv4`, `last sync` */
  readonly name: string;
  readonly lines: readonly string[];
  /** Of the family whose part stands before it. */
  readonly isOfFamily?: true;
  /** The time that its first line speaks of. */
  readonly at?: number | undefined;
}

interface StatusHeading {
  /** `Junction v1.0.0 on node1` */
  readonly title: string;
  /** `nftables mode, process 7 for 3 h` */
  readonly how: string;
  /** `ok`, `starting`, `2 errors` */
  readonly state: string;
  readonly isWrong: boolean;
}

export function statusHeading(status: Status): StatusHeading {
  const { version, node, mode, layout, findings } = status;
  const errors = findings.filter(({ severity }) => severity === 'error').length;
  const isStarting = !isPlanOnly(status) && stageOf(status) === 'starting';
  const kind = mode === 'iptables' ? `${mode} mode, layout ${layout}` : `${mode} mode`;
  return {
    title: `Junction v${version.replace(/^v/, '')} on ${node}`,
    how: `${kind}, ${isPlanOnly(status) ? 'a plan that is written nowhere' : runText(status)}`,
    state:
      [...(isStarting ? ['starting'] : []), ...(errors > 0 ? [counted(errors, 'error')] : [])].join(', ') ||
      'ok',
    isWrong: isStarting || errors > 0,
  };
}

function runText({ processId, startedAt, now }: Status): string {
  return ['process', processId, 'for', durationText(now - startedAt)].join(' ');
}

export function statusParts(status: Status): readonly StatusPart[] {
  const { now } = status;
  return [
    sourcePart(status.source, now),
    ...status.families.flatMap((family) =>
      isPlanOnly(status) ? [{ name: family.family, lines: [sizeText(family)] }] : familyParts(family, now),
    ),
    ...status.leftOut.map(({ family, reason, since }) => ({
      name: family,
      at: since,
      lines: [`not served for ${durationText(now - since)}: ${reason}`],
    })),
    ...conntrackPart(status),
  ];
}

/** What a question that waited found. */
export function waitPart({ wait }: Status): readonly StatusPart[] {
  if (!wait) return [];
  const { isApplied, milliseconds, open } = wait;
  const took = durationText(milliseconds);
  if (isApplied) return [{ name: 'applied', lines: [`everything that was received, after ${took}`] }];
  return [{ name: 'not applied', lines: [`after ${took}:`, ...open] }];
}

function isPlanOnly({ answeredBy }: Status): boolean {
  return answeredBy?.kind === 'plan';
}

/** ` (protobuf)`; nothing before the first answer. */
export function encodingText(resources: readonly ResourceStatus[]): string {
  const encodings = [...new Set(resources.flatMap(({ encoding }) => encoding ?? []))].sort();
  return encodings.length === 0 ? '' : ` (${encodings.join(' and ').replace('json', 'JSON')})`;
}

function sourcePart(source: SourceStatus, now: number): StatusPart {
  const last =
    source.lastEventAt === undefined ? 'no event yet' : `last event ${ago(source.lastEventAt, now)}`;
  if (source.kind === 'manifests')
    return {
      name: 'manifests',
      lines: [`${source.paths.join(', ')}; ${last}`, ...source.problems],
      at: source.lastEventAt,
    };
  const failing = source.resources.flatMap(({ resource, hasListed, failingSince, reason }) => {
    if (failingSince === undefined) return hasListed ? [] : [`${resource} are not listed yet`];
    return [
      `${resource} cannot be ${hasListed ? 'watched' : 'listed'} since ${failingSince}: ${reason ?? ''}`,
    ];
  });
  return {
    name: 'API server',
    lines: [
      `${source.server}${encodingText(source.resources)}; ${last}, ${counted(source.reconnects, 'reconnect')}`,
      ...failing,
    ],
    at: source.lastEventAt,
  };
}

function familyParts(family: FamilyStatus, now: number): readonly StatusPart[] {
  const { isServed, lastSync, refused } = family;
  const size = sizeText(family);
  return [
    { name: family.family, lines: [isServed ? size : `${size}; no rules are written yet`] },
    part('last sync', lastSync ? syncLines(lastSync, now) : ['none yet'], lastSync?.at),
    part('kernel read', [verificationText(family, now)], family.lastVerification?.at),
    ...some(
      'refused',
      refused.map(({ servicePort, error }) => `${servicePort}: ${error}`),
    ),
    ...some('others', foreignLines(family.foreignChanges, now), family.foreignChanges.last?.at),
  ];
}

function sizeText({ services, servicePorts, endpoints }: FamilyStatus): string {
  return `${counted(services, 'service')} with ${counted(servicePorts, 'port')}, ${counted(endpoints, 'endpoint')}`;
}

function part(name: string, lines: readonly string[], at?: number): StatusPart {
  return { name, lines, isOfFamily: true, at };
}

function some(name: string, lines: readonly string[], at?: number): readonly StatusPart[] {
  return lines.length === 0 ? [] : [part(name, lines, at)];
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

function verificationText({ lastVerification, isNotified }: FamilyStatus, now: number): string {
  const verified = lastVerification
    ? `${ago(lastVerification.at, now)} in ${durationText(lastVerification.ms)}: ${lastVerification.isUnchanged ? 'as it should be' : 'brought up to date'}`
    : 'not yet';
  return isNotified ? `${verified}; the kernel notifies of changes` : verified;
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

function conntrackPart({ conntrack }: Status): readonly StatusPart[] {
  if (!conntrack) return [];
  const { count, max } = conntrack;
  const share = max === 0 ? '' : ` (${Math.round((100 * count) / max)} %)`;
  return [{ name: 'conntrack', lines: [`${grouped(count)} of ${grouped(max)} entries${share}`] }];
}
