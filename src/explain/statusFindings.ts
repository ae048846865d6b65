/** What is wrong with a running proxy, by its own status: what `status` shows first, and by which it ends with an error. */
import type { FamilyStatus, SourceStatus, Status } from './status.ts';
import type { Finding } from './types.ts';
import { errorFinding, listed, warning } from './finding.ts';

type Observed = Pick<Status, 'source' | 'families' | 'conntrack'> & {
  /** Families with a change that has waited for too long. */
  readonly late: readonly string[];
};

/** From here on new connections are about to be dropped. */
const CONNTRACK_NEARLY_FULL = 0.9;

export function statusFindings({ source, families, conntrack, late }: Observed): readonly Finding[] {
  return [
    ...late.map((family) =>
      errorFinding('sync-late', `${family}: a change waits to be written`, {
        consequence: 'Rules are older than the cluster.',
      }),
    ),
    ...sourceFindings(source),
    ...families.flatMap((family) => [...familyFindings(family)]),
    ...conntrackFindings(conntrack),
  ];
}

function* sourceFindings(source: SourceStatus): Iterable<Finding> {
  if (source.kind === 'manifests') return;
  for (const { resource, hasListed, failingSince, reason = 'no reason' } of source.resources) {
    if (!hasListed)
      yield errorFinding('resource-not-listed', `${resource} have never been listed`, {
        evidence:
          failingSince === undefined ? 'the first list is under way' : `since ${failingSince}: ${reason}`,
        consequence: 'Nothing is written before everything has been listed once.',
      });
    else if (failingSince !== undefined)
      yield errorFinding('resource-not-watched', `${resource} cannot be watched`, {
        evidence: `since ${failingSince}: ${reason}`,
        consequence: 'Rules stay as they are; changes since then are not known here.',
      });
  }
}

function* familyFindings({ family, lastSync, refused, isServed }: FamilyStatus): Iterable<Finding> {
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
    yield errorFinding('service-refused', `${family}: the kernel refuses ${countOf(refused.length)}`, {
      evidence: `${listed(refused.map(({ servicePort }) => servicePort))}: ${first.error}`,
      consequence: 'What they had before stays in force.',
    });
}

function countOf(servicePorts: number): string {
  return servicePorts === 1 ? 'a service port' : `${servicePorts} service ports`;
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
