/** Who answers. */
import type { Host, Session } from '../../../lab/host.ts';
import type { Outcome, Transport } from '../../../lab/protocol.ts';

/** IPVS gives everybody a turn, so that few questions are enough. */
const QUESTIONS = 8;
const ANSWER_MS = 10_000;

/** `pod-a pod-c`, `refused`, `timeout` */
export async function answerers(
  from: Host,
  address: string,
  port = 80,
  protocol: Transport = 'tcp',
): Promise<string> {
  const outcomes = await Promise.all(
    Array.from({ length: QUESTIONS }, () => from.request(protocol, address, port, { timeoutMs: ANSWER_MS })),
  );
  return [...new Set(outcomes.map(whoAnswered))].sort().join(' ');
}

export function whoAnswered(outcome: Outcome): string {
  return outcome.outcome === 'answer' ? outcome.reply.host : outcome.outcome;
}

/** While an emulated machine is switched to another mode, TCP may have come to wait for half a minute between two tries. */
const HELD_MS = 60_000;

/** Once: who keeps asking would not see that an answer was lost. */
export async function asked(session: Session): Promise<string> {
  return whoAnswered(await session.send(HELD_MS));
}

/** A connection that ends at this pod. */
export async function sessionTo(pod: string, from: Host, address: string, port = 80): Promise<Session> {
  for (let tries = 0; tries < QUESTIONS; tries++) {
    const session = await from.openSession(address, port);
    if ((await asked(session)) === pod) return session;
    await session.close();
  }
  throw new Error(`${from.name} is never led to ${pod} by ${address} port ${port}`);
}
