/** The proxy that runs here, by what it says of itself: whether it answers, syncs, is refused something, or is fought with. */
import type { FamilyStatus, Status } from '../explain/status.ts';
import { durationText } from '../text/ages.ts';
import type { GroupFindings } from './group.ts';
import type { DoctorMachine } from './machine.ts';

/** What is known of a running proxy. */
export interface ProxyLook {
  readonly status?: Status | undefined;
  /** Why there is no status: the socket is absent, or does not answer. */
  readonly whyNoStatus?: string | undefined;
  /** Who has the lock of this network namespace: `pid 123, mode nftables, …`. */
  readonly holder?: string | undefined;
  readonly socket: string;
}

/** Waits in the machinery, not in the kernel: a sync takes milliseconds. */
const STALE_FACTOR = 3;

export function checkProxy(
  group: GroupFindings,
  machine: Pick<DoctorMachine, 'procFile'>,
  look: ProxyLook,
  syncPeriodMs: number,
): void {
  const { status } = look;
  if (!status) {
    reportAbsence(group, machine, look);
    return;
  }
  const age = durationText(status.now - status.startedAt);
  group.fine(`Junction ${status.version} (pid ${status.processId}) runs in ${status.mode} mode since ${age}`);
  for (const family of status.families) checkFamily(group, status, family, syncPeriodMs);
  for (const { family, reason, since } of status.leftOut)
    group.found({
      code: 'family-left-out',
      severity: 'info',
      text: `${family} is not served on this node`,
      evidence: `${reason}, since ${durationText(status.now - since)}`,
      consequence: `${family} addresses of services do not answer here`,
      cure: `nothing, if the cluster has no ${family}; otherwise junction check --proxy-mode ${status.mode} --family ${family.toLowerCase()}`,
    });
  // The others are found here too, with more evidence.
  for (const finding of status.findings.filter(({ code }) => code === 'sync-late'))
    group.found({
      ...finding,
      evidence: finding.evidence ?? finding.text,
      consequence: finding.consequence ?? 'not known',
      cure: finding.cure ?? 'the log of Junction says more',
    });
}

function reportAbsence(
  group: GroupFindings,
  machine: Pick<DoctorMachine, 'procFile'>,
  { holder, whyNoStatus, socket }: ProxyLook,
): void {
  if (holder === undefined) {
    group.found({
      code: 'proxy-not-running',
      severity: 'error',
      text: 'no Junction runs in this network namespace',
      evidence: `nothing has the lock of this network namespace; ${socket}: ${whyNoStatus ?? 'not asked'}`,
      consequence: 'rules that are there stay as they are: changes of services and endpoints are not written',
      cure: 'systemctl start junction, or kubectl -n kube-system rollout status daemonset/junction and its log',
    });
    return;
  }
  const pid = /^pid (\d+)/.exec(holder)?.[1];
  const state = pid === undefined ? undefined : stateOf(machine.procFile(`${pid}/status`) ?? '');
  const isStopped = state?.startsWith('T') === true || state?.startsWith('t') === true;
  group.found({
    code: isStopped ? 'proxy-stopped' : 'proxy-silent',
    severity: isStopped ? 'error' : 'warning',
    text: isStopped
      ? 'Junction is stopped by a signal or a debugger'
      : 'Junction runs and does not answer at its socket',
    evidence: [
      holder,
      ...(state === undefined ? [] : [`state ${state}`]),
      `${socket}: ${whyNoStatus ?? 'no answer'}`,
    ].join('; '),
    consequence: isStopped
      ? 'changes of services and endpoints are not written, and rules that others delete are not repaired'
      : 'what it knows cannot be asked; the rules may be right all the same',
    cure: isStopped
      ? `kill -CONT ${pid ?? 'PID'}`
      : 'give the same --api-socket as the proxy has; if it is the same, restart Junction and keep its log',
  });
}

/** `T (stopped)` */
function stateOf(processStatus: string): string | undefined {
  return /^State:\s*(.+)$/m.exec(processStatus)?.[1];
}

function checkFamily(
  group: GroupFindings,
  { now }: Status,
  status: FamilyStatus,
  syncPeriodMs: number,
): void {
  const { family, lastSync, isServed, refused, foreignChanges } = status;
  if (!isServed)
    group.found({
      code: 'not-served-yet',
      severity: 'error',
      text: `the first ${family} rules are not written yet`,
      evidence: lastSync?.error ?? 'no sync has succeeded',
      consequence: `${family} services do not answer, or as rules of an earlier run have it`,
      cure: 'the findings above and below say what it waits for; the log of Junction has the line Sync failed',
    });
  if (lastSync?.kind === 'failed')
    group.found({
      code: 'sync-failed',
      severity: 'error',
      text: `the last ${family} sync failed`,
      evidence: `${lastSync.error ?? 'no reason'}, ${durationText(now - lastSync.at)} ago, cause: ${lastSync.cause}`,
      consequence: 'changes since then are not in the kernel; it is tried again',
      cure: 'what the error names; docs/errors.md has each code with what to do',
    });
  else if (lastSync)
    group.fine(
      `${family}: ${status.services} services, ${status.endpoints} endpoints; last sync ${durationText(now - lastSync.at)} ago took ${Math.round(lastSync.ms)} ms`,
    );
  if (!status.isNotified && isServed) {
    const since = now - (status.lastVerification?.at ?? 0);
    if (status.lastVerification && since > STALE_FACTOR * syncPeriodMs)
      group.found({
        code: 'verification-overdue',
        severity: 'warning',
        text: `the ${family} rules were not read back for ${durationText(since)}`,
        evidence: `sync period ${durationText(syncPeriodMs)}`,
        consequence: 'rules that another program deleted stay deleted until they are',
        cure: 'a machine without processor time to spare, or a hung iptables: the log of Junction names it',
      });
  }
  for (const { servicePort, error } of refused.slice(0, MOST_REFUSED))
    group.found({
      code: 'refused',
      severity: 'error',
      text: `the kernel refuses the rules of ${servicePort} (${family})`,
      evidence: error,
      consequence: 'this service port is served as it was before the change, or not at all; all others are',
      cure: 'junction check names a kernel module that is missing; otherwise report it with this line',
    });
  const { last, byProgram, count } = foreignChanges;
  if (last)
    group.found({
      code: 'foreign-changes',
      severity: last.repairedMs === undefined ? 'error' : now - last.at < RECENT_MS ? 'warning' : 'info',
      text: `another program changed our ${family} rules${last.repairedMs === undefined ? ', and they are not repaired yet' : ''}`,
      evidence: `${last.program}, ${durationText(now - last.at)} ago: ${last.objects.slice(0, MOST_REFUSED).join(', ')}; ${count} times in all (${Object.entries(
        byProgram,
      )
        .map(([program, times]) => `${program} ${times}`)
        .join(', ')})`,
      consequence: 'until each repair, packets to services went where those rules sent them',
      cure: 'stop that program, or let it leave the chains KUBE-* and the tables junction alone',
    });
}

const MOST_REFUSED = 10;
/** A repair that was longer ago has no consequences any more. */
const RECENT_MS = 3_600_000;
