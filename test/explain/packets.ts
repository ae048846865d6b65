/** Questions about packets to one service, and what the answers hold. */
import { explainPackets } from '../../src/explain/packet.ts';
import type { Subject } from '../../src/explain/subject.ts';
import type { PacketExplanation } from '../../src/explain/types.ts';
import { type KubernetesObject, service, type ServiceFields, slice } from '../scenarios/objects.ts';

export const CLUSTER_IP = '10.96.1.1';

/** One service, `default/web`, with these endpoints. */
export function web(
  fields: Partial<ServiceFields>,
  ...endpoints: readonly string[]
): readonly KubernetesObject[] {
  return [
    service('web', { clusterIP: CLUSTER_IP, ports: 'http=80:30080', ...fields }),
    ...(endpoints.length > 0 ? [slice('web', 'http=8080', ...endpoints)] : []),
  ];
}

export async function ask(
  subject: Subject,
  from: string,
  to = `${CLUSTER_IP}:80`,
): Promise<PacketExplanation> {
  const [answer] = await explainPackets(subject, { from, to });
  if (!answer) throw new Error('no answer');
  return answer;
}

export function codesOf({ findings }: PacketExplanation): readonly string[] {
  return findings.map(({ code }) => code);
}

export function leftOutOf({ leftOut }: PacketExplanation): readonly string[] {
  return leftOut.map(({ pod, reason, text }) => `${pod ?? '?'} ${reason}: ${text}`);
}
