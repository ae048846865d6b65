/** Where a packet comes from, and why it counts as that. */
import { isLoopback } from '../model/ip.ts';
import { classifySource, isLocal, type Packet } from '../plan/decide.ts';
import type { LocalTrafficDetector } from '../plan/types.ts';
import type { FamilySubject, Subject } from './subject.ts';
import type { PacketExplanation } from './types.ts';

export function explainSource(
  subject: Pick<Subject, 'detectLocal'>,
  { plan, host }: Pick<FamilySubject, 'plan' | 'host'>,
  packet: Packet,
): PacketExplanation['source'] {
  const { localDetector } = plan.view;
  const found = classifySource(localDetector, packet, host);
  const { source } = packet;
  const own = isLoopback(source) ? 'a loopback address' : 'an address of this node';
  switch (found) {
    case 'pod':
      return { class: found, why: podReason(localDetector, subject.detectLocal, packet) };
    case 'node':
      return { class: found, why: own };
    case 'outside': {
      const notOwn = isLocal(source, host) ? own : 'no address of this node';
      return { class: found, why: `${notPodReason(localDetector, subject.detectLocal, packet)}, ${notOwn}` };
    }
  }
}

function rangeName(mode: Subject['detectLocal']): string {
  if (mode === undefined) return 'the pod network';
  return mode === 'NodeCIDR' ? 'the podCIDR of this Node,' : '--cluster-cidr';
}

function podReason(detector: LocalTrafficDetector, mode: Subject['detectLocal'], packet: Packet): string {
  switch (detector.kind) {
    case 'cidr':
      return `in ${rangeName(mode)} ${detector.cidr}`;
    case 'interface':
      return `came in through ${detector.name} (--pod-bridge-interface)`;
    case 'interfacePrefix':
      return `came in through ${packet.inInterface ?? ''} (--pod-interface-name-prefix ${detector.prefix})`;
    case 'none':
      return '';
  }
}

function notPodReason(detector: LocalTrafficDetector, mode: Subject['detectLocal'], packet: Packet): string {
  const came =
    packet.inInterface === undefined ? 'sent by this node' : `came in through ${packet.inInterface}`;
  switch (detector.kind) {
    case 'cidr':
      return `not in ${rangeName(mode)} ${detector.cidr}`;
    case 'interface':
      return `${came}, not ${detector.name} (--pod-bridge-interface)`;
    case 'interfacePrefix':
      return `${came}, not ${detector.prefix}… (--pod-interface-name-prefix)`;
    case 'none':
      return mode === 'NodeCIDR'
        ? 'this Node has no podCIDR, so no source is known as a pod'
        : 'no --cluster-cidr is set, so no source is known as a pod';
  }
}
