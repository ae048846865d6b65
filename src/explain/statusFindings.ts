/** What is wrong with a running proxy, by its own status: what `status` shows first, and by which it ends with an error. */
import type { FamilyStatus, SourceStatus, Status } from './status.ts';
import type { Finding } from './types.ts';
import { countOf, errorFinding, info, listed, warning } from './finding.ts';

type Observed = Pick<Status, 'source' | 'families' | 'leftOut' | 'conntrack'> & {
  /** Families with a change that has waited for too long. */
  readonly late: readonly string[];
};

/** From here on new connections are about to be dropped. */
const CONNTRACK_NEARLY_FULL = 0.9;

export function statusFindings({ source, families, leftOut, conntrack, late }: Observed): readonly Finding[] {
  return [
    ...late.map((family) =>
      errorFinding('sync-late', `${family}: a change waits to be written`, {
        consequence: 'Rules are older than the cluster.',
      }),
    ),
    ...sourceFindings(source),
    ...served(families, leftOut).flatMap((family) => [...familyFindings(family)]),
    ...leftOut.map(({ family, reason }) =>
      info('family-left-out', `${family} is not served`, { evidence: reason }),
    ),
    ...conntrackFindings(conntrack),
  ];
}

/** Before the first rules of every family that can be served, nothing is in order. */
export function stageOf({
  families,
  leftOut,
  findings,
}: Pick<Status, 'families' | 'leftOut' | 'findings'>): NonNullable<Status['state']> {
  if (served(families, leftOut).some(({ isServed }) => !isServed)) return 'starting';
  return findings.some(({ severity }) => severity === 'error') ? 'errors' : 'ok';
}

function served(families: Status['families'], leftOut: Status['leftOut']): Status['families'] {
  return families.filter(({ family }) => !leftOut.some((each) => each.family === family));
}

function* sourceFindings(source: SourceStatus): Iterable<Finding> {
  if (source.kind === 'manifests') {
    const [first] = source.problems;
    if (first !== undefined)
      yield warning('manifest-problem', `the manifests have ${countOf(source.problems.length, 'problem')}`, {
        evidence: first,
        consequence: 'What is wrong has no effect; the last version that was right stays in force.',
      });
    return;
  }
  for (const { resource, hasListed, failingSince, reason = 'no reason' } of source.resources) {
    const consequence = 'Nothing is written before everything has been listed once.';
    if (!hasListed && failingSince === undefined)
      yield warning('resource-not-listed', `${resource} are being listed for the first time`, {
        consequence,
      });
    else if (!hasListed)
      yield errorFinding('resource-not-listed', `${resource} have never been listed`, {
        evidence: `since ${failingSince}: ${reason}`,
        consequence,
      });
    else if (failingSince !== undefined)
      yield errorFinding('resource-not-watched', `${resource} cannot be watched`, {
        evidence: `since ${failingSince}: ${reason}`,
        consequence: 'Rules stay as they are; changes since then are not known here.',
      });
  }
}

function* familyFindings(status: FamilyStatus): Iterable<Finding> {
  const { family, lastSync, refused, isServed, takenPorts = [], isDraining } = status;
  if (lastSync?.kind === 'failed')
    yield errorFinding('sync-failed', `${family}: the last sync failed`, {
      evidence: lastSync.error ?? 'no reason',
      consequence: 'Changes since then are not in the kernel; it is tried again.',
    });
  else if (!isServed)
    yield warning('not-served-yet', `${family}: the first rules are not written yet`, {
      consequence: 'Services do not answer, or as rules of an earlier run have it.',
    });
  const [first] = refused;
  if (first)
    yield errorFinding(
      'service-refused',
      `${family}: the kernel refuses ${countOf(refused.length, 'service port')}`,
      {
        evidence: `${listed(refused.map(({ servicePort }) => servicePort))}: ${first.error}`,
        consequence: 'What they had before stays in force.',
      },
    );
  for (const taken of takenPorts)
    yield warning('port-taken', `${family}: ${taken}`, {
      consequence: 'Another program has the port; it is tried again each sync period.',
    });
  if (isDraining)
    yield info('draining', `${family}: endpoints that are gone are kept until their connections end`);
}

function* conntrackFindings(conntrack: Status['conntrack']): Iterable<Finding> {
  if (!conntrack || conntrack.max <= 0 || conntrack.count < CONNTRACK_NEARLY_FULL * conntrack.max) return;
  const { count, max } = conntrack;
  const text = `conntrack has ${count} of at most ${max} flows`;
  const details = {
    consequence: 'When it is full, packets of new connections are dropped.',
    cure: `sysctl -w net.netfilter.nf_conntrack_max=${2 * max}`,
  };
  yield count >= max
    ? errorFinding('conntrack-full', text, details)
    : warning('conntrack-nearly-full', text, details);
}
