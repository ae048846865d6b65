/** The API server: whether the proxy can list and watch it, and whether the clocks agree. */
import type { ResourceStatus, SourceStatus } from '../explain/status.ts';
import { encodingText } from '../explain/statusText.ts';
import { durationText } from '../text/ages.ts';
import type { GroupFindings } from './group.ts';

/** An HTTP answer of the API server to this process, or why there is none. */
export interface ServerLook {
  readonly server: string;
  /** When the answer came, on this machine's clock. */
  readonly at: number;
  /** The Date header, which has whole seconds. */
  readonly date?: number | undefined;
  readonly failure?: { readonly message: string; readonly hint: string } | undefined;
}

/** Kubernetes' tokens, leases and certificates bear half a minute. */
const SKEW_MS = 5000;
const GREAT_SKEW_MS = 60_000;
const QUIET_MS = 10 * 60_000;

export function checkSource(group: GroupFindings, source: SourceStatus, now: number): void {
  if (source.kind === 'manifests') {
    group.fine(`manifests: ${source.paths.join(', ')}`);
    for (const problem of source.problems.slice(0, 10))
      group.found({
        code: 'manifest-problem',
        severity: 'warning',
        text: 'something in the manifests cannot be used',
        evidence: problem,
        consequence: 'the last good version of the object is served, or nothing of it',
        cure: 'correct the place that the message names; junction check --manifests shows all of them',
      });
    return;
  }
  for (const { resources, hasListed, failingSince, reason } of outages(source.resources)) {
    const since = failingSince === undefined ? undefined : Date.parse(failingSince);
    const duration =
      since === undefined ? 'the start' : `${durationText(now - since)} (${failingSince ?? ''})`;
    group.found({
      code: 'api-unreachable',
      severity: 'error',
      text: `${resources.join(', ')} cannot be ${hasListed ? 'watched' : 'listed'}: the connection of this node to the API server is down`,
      evidence: `${source.server}: ${reason ?? 'no reason'}, for ${duration}`,
      consequence: hasListed
        ? 'the rules stay as they are: new endpoints get no connections, and connections go on being sent to endpoints that are gone'
        : 'nothing is served until the first list succeeds',
      cure: cureOf(reason ?? '', source.server),
    });
  }
  if (source.resources.every(({ hasListed, failingSince }) => hasListed && failingSince === undefined))
    group.fine(
      `${source.server}: everything is listed and watched${encodingText(source.resources)}; ${source.reconnects} reconnects`,
    );
  const quiet = source.lastEventAt === undefined ? undefined : now - source.lastEventAt;
  if (quiet !== undefined && quiet > QUIET_MS)
    group.found({
      code: 'api-quiet',
      severity: 'info',
      text: `the API server has sent nothing for ${durationText(quiet)}`,
      evidence: `last event or bookmark: ${new Date(source.lastEventAt ?? 0).toISOString()}`,
      consequence:
        'usual in a quiet cluster; a connection that a firewall dropped silently looks the same until its time limit',
      cure: 'kubectl get endpointslices -A -w from this node shows whether events come',
    });
  else if (quiet !== undefined) group.fine(`last event ${durationText(quiet)} ago`);
}

interface Outage {
  readonly resources: string[];
  readonly hasListed: boolean;
  /** Of the first. */
  failingSince?: string | undefined;
  readonly reason?: string | undefined;
}

/** What fails for one reason is one outage, whatever it keeps from being listed. */
function outages(resources: readonly ResourceStatus[]): readonly Outage[] {
  const found = new Map<string, Outage>();
  for (const { resource, hasListed, failingSince, reason: whole } of resources) {
    if (failingSince === undefined && hasListed) continue;
    // It begins with the address that was asked, which has the resource in it.
    const reason = whole?.replace(/^https?:\/\/\S+: /, '');
    const key = `${hasListed} ${reason ?? ''}`;
    const outage = found.get(key);
    if (!outage) found.set(key, { resources: [resource], hasListed, failingSince, reason });
    else {
      outage.resources.push(resource);
      if (failingSince !== undefined && (outage.failingSince ?? failingSince) >= failingSince)
        outage.failingSince = failingSince;
    }
  }
  return [...found.values()];
}

function cureOf(reason: string, server: string): string {
  if (/forbidden|(?<!:)\b403\b/i.test(reason))
    return 'give the ServiceAccount its ClusterRole: deploy/ has it, docs/deployment.md says why';
  if (/unauthorized|(?<!:)\b401\b/i.test(reason))
    return 'the token is refused: look at the ServiceAccount, its token and the clock of this node';
  if (/certificate|x509|self.signed/i.test(reason))
    return `the certificate is not trusted: compare the CA of the kubeconfig with that of ${server}`;
  return `curl -k ${server}/livez from this node: the network, a firewall or the address is wrong where it gets no answer; then the control plane`;
}

export function checkServer(group: GroupFindings, look: ServerLook): void {
  const { failure, server } = look;
  if (failure) {
    group.found({
      code: 'api-unreachable',
      severity: 'error',
      text: 'the API server does not answer this process',
      evidence: `${server}: ${failure.message}`,
      consequence: 'with these credentials from this node, nothing can be listed',
      cure: failure.hint,
    });
    return;
  }
  group.fine(`${server} answers`);
  if (look.date === undefined) {
    group.notEvaluated('clock', 'the API server sends no Date header');
    return;
  }
  // The header has whole seconds: up to one of them is no difference.
  const difference = look.at - look.date;
  const skew = difference > 0 ? Math.max(0, difference - 1000) : -difference;
  if (skew < SKEW_MS) {
    group.fine('this clock and that of the API server agree');
    return;
  }
  group.found({
    code: 'clock-skew',
    severity: skew >= GREAT_SKEW_MS ? 'error' : 'warning',
    text: `this clock is ${durationText(skew)} ${difference > 0 ? 'ahead of' : 'behind'} that of the API server`,
    evidence: `here ${new Date(look.at).toISOString()}, there ${new Date(look.date).toISOString()}`,
    consequence:
      'tokens and certificates may be refused as expired or not valid yet, and durations in metrics and events are wrong',
    cure: 'timedatectl status, chronyc tracking: let the clock be set by NTP on the machine that is wrong',
  });
}
