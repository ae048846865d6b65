/** Every service with a problem, worst first; and a sample of services, walked through the rules in the kernel. */
import { PortEndpoints } from '../explain/endpoints.ts';
import { countOf } from '../explain/finding.ts';
import { serviceRow } from '../explain/rows.ts';
import { explainService } from '../explain/service.ts';
import { portFindings, serviceFindings } from '../explain/serviceFindings.ts';
import type { Subject } from '../explain/subject.ts';
import type { Finding, PacketExplanation } from '../explain/types.ts';
import type { ObjectKey } from '../model/objects.ts';
import type { GroupFindings } from './group.ts';

const MOST_FINDINGS = 40;

/** What the plan shows. */
export function checkServices(group: GroupFindings, subject: Subject, only?: ObjectKey): void {
  const found = { error: [] as Finding[], warning: [] as Finding[] };
  let count = 0;
  const bad = new Set<ObjectKey>();
  for (const service of servicesOf(subject, only)) {
    count += 1;
    for (const finding of findingsOf(subject, service)) {
      if (finding.severity === 'info') continue;
      bad.add(service);
      found[finding.severity].push(about(subject, service, finding));
    }
  }
  const all = [...found.error, ...found.warning];
  for (const finding of all.slice(0, MOST_FINDINGS)) report(group, finding);
  if (all.length > MOST_FINDINGS)
    report(group, {
      code: 'more-services',
      severity: 'info',
      text: `${all.length - MOST_FINDINGS} more findings of services are not shown`,
      evidence: `${bad.size} of ${count} services have a problem`,
      cure: 'junction services --problems lists all of them',
    });
  group.fine(`${count - bad.size} of ${count} services have no problem in the plan`);
}

/** Each once, whatever families it has. */
function servicesOf({ families }: Subject, only: ObjectKey | undefined): ReadonlySet<ObjectKey> {
  if (only !== undefined)
    return new Set(families.some((family) => family.portsOf(only).length > 0) ? [only] : []);
  const services = new Set<ObjectKey>();
  for (const family of families) for (const service of family.services()) services.add(service);
  return services;
}

function findingsOf(subject: Subject, service: ObjectKey): readonly Finding[] {
  const findings = [...serviceFindings(subject, service)];
  for (const family of subject.families)
    for (const port of family.portsOf(service))
      findings.push(...portFindings(subject, family, port, new PortEndpoints(subject, family, port)));
  return [...new Map(findings.map((each) => [`${each.code} ${each.text}`, each])).values()];
}

/** Names the service, and what it has where nothing else is said. */
function about(subject: Subject, service: ObjectKey, finding: Finding): Finding {
  const { text, evidence } = finding;
  return {
    ...finding,
    text: text.includes(service) ? text : `${service}: ${text}`,
    evidence: evidence ?? countsOf(subject, service),
  };
}

function countsOf(subject: Subject, service: ObjectKey): string {
  const { all, ready, local } = serviceRow(subject, service)?.endpoints ?? { all: 0, ready: 0, local: 0 };
  return `${service}: ${countOf(all, 'endpoint')}, ${ready} ready, of these ${local} on this node`;
}

function report(group: GroupFindings, finding: Finding): void {
  group.found({
    ...finding,
    evidence: finding.evidence ?? finding.text,
    consequence: finding.consequence ?? 'its clients may not reach it',
    cure: finding.cure ?? 'junction explain NAMESPACE/NAME says more',
  });
}

const MOST_WALKED = 20;
const MOST_NOTES = 5;
/** Chains of a large cluster take a second each to read. */
const WALK_LIMIT_MS = 10_000;

/** What the kernel does with packets to a sample, spread over all services. */
export async function walkServices(group: GroupFindings, subject: Subject, only?: ObjectKey): Promise<void> {
  if (!subject.families.some(({ kernel }) => kernel)) {
    group.notEvaluated('packets in the kernel', 'no kernel is asked');
    return;
  }
  const services = [...servicesOf(subject, only)];
  const step = Math.max(1, Math.floor(services.length / MOST_WALKED));
  const asked = services.filter((_, index) => index % step === 0).slice(0, MOST_WALKED);
  const differing = new Map<string, { readonly finding: Finding; readonly packets: string[] }>();
  const notes = new Set<string>();
  let walked = 0;
  let count = 0;
  const until = subject.now() + WALK_LIMIT_MS;
  for (const [index, service] of asked.entries()) {
    if (subject.now() > until) {
      const rest = `${asked.length - index} of ${asked.length} services`;
      group.notEvaluated('packets in the kernel', `${rest} are left out after ${WALK_LIMIT_MS / 1000} s`);
      break;
    }
    const { ports } = await explainService(subject, { service });
    count += 1;
    for (const packet of ports.flatMap(({ packets }) => packets)) {
      if (packet.kernel) walked += 1;
      for (const note of packet.kernel?.notes ?? []) notes.add(note);
      collect(differing, packet);
    }
  }
  for (const { finding, packets } of differing.values())
    report(group, {
      ...finding,
      evidence: `${finding.evidence ?? ''}; ${packets.length} of ${walked} packets, such as ${packets[0] ?? ''}`,
    });
  for (const note of [...notes].slice(0, MOST_NOTES)) group.notEvaluated('packets in the kernel', note);
  if (differing.size === 0)
    group.fine(
      `the kernel does what is planned with ${countOf(walked, 'packet')} to ${countOf(count, 'service')}`,
    );
}

const KERNEL_CODES: ReadonlySet<string> = new Set(['kernel-differs', 'foreign-rule']);

/** One rule of another program may stop packets of every service. */
function collect(
  differing: Map<string, { readonly finding: Finding; readonly packets: string[] }>,
  { findings, packet, frontend }: PacketExplanation,
): void {
  for (const finding of findings) {
    if (!KERNEL_CODES.has(finding.code)) continue;
    const key = finding.code === 'foreign-rule' ? finding.text : finding.code;
    const { source, destination, port, protocol } = packet;
    const name = `${source} → ${destination} port ${port}/${protocol}${frontend ? ` (${frontend.servicePort})` : ''}`;
    const known = differing.get(key);
    if (known) known.packets.push(name);
    else differing.set(key, { finding, packets: [name] });
  }
}
