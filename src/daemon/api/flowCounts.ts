/**
 * Live flows of a service by endpoint, from the kernel's table of connections. The kernel walks all of it for a question, so
 * it is asked in a thread of its own, which ends when nobody has asked for a while.
 */
import { readFileSync } from 'node:fs';
import { attempt } from '../../errors.ts';
import type { FamilySubject } from '../../explain/subject.ts';
import { hostPort } from '../../model/ip.ts';
import type { ObjectKey, Protocol } from '../../model/objects.ts';
import { decodeFlowTarget, getFlows } from '../../netlink/conntrack.ts';
import { messagesOf } from '../../netlink/channel.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import { NetlinkThread } from '../../netlink/thread.ts';
import type { Frontend } from '../../plan/types.ts';
import type { Clock } from '../../time/clock.ts';

interface FlowCountsOptions {
  readonly clock: Clock;
  readonly sysctlRoot: string;
}

const IDLE_MS = 30_000;
/** Of more flows than this, an answer would take the memory of a small cluster's proxy. */
const MOST_FLOWS = 300_000;
/** Each is a walk through the table. */
const MOST_QUESTIONS = 8;

export class FlowCounts {
  readonly #options: FlowCountsOptions;
  #thread: Promise<NetlinkThread> | undefined;
  #cancelEnd: (() => void) | undefined;

  constructor(options: FlowCountsOptions) {
    this.#options = options;
  }

  /** By endpoint: `10.244.1.11:8081`. Rejects where the kernel cannot be asked, with the reason. */
  async of(service: ObjectKey, families: readonly FamilySubject[]): Promise<ReadonlyMap<string, number>> {
    const path = `${this.#options.sysctlRoot}/net/netfilter/nf_conntrack_count`;
    const all = Number(attempt(() => readFileSync(path, 'utf8')) ?? 0);
    if (all > MOST_FLOWS)
      throw new Error(`conntrack has ${all} flows, too many to count those of one service`);
    const counts = new Map<string, number>();
    for (const subject of families) await this.#count(service, subject, counts);
    return counts;
  }

  async close(): Promise<void> {
    this.#cancelEnd?.();
    const thread = await this.#thread?.catch(() => undefined);
    this.#thread = undefined;
    await thread?.close();
  }

  async #count(service: ObjectKey, subject: FamilySubject, counts: Map<string, number>): Promise<void> {
    const { dialled, questions } = whatIsDialled(service, subject);
    if (questions.length === 0) return;
    const thread = await this.#started();
    const channel = thread.channel(NETLINK_NETFILTER);
    const replies = await channel.dumpAll(questions.map((question) => getFlows(subject.family, question)));
    for (const [index, reply] of replies.entries()) {
      const { protocol, port } = questions[index] ?? {};
      for (const { payload } of messagesOf(reply, 'flows')) {
        const flow = decodeFlowTarget(payload);
        // Kernels before 5.8 do not know the filter, and return every flow to each question.
        if (flow?.protocol !== protocol || (port !== undefined && flow?.destinationPort !== port)) continue;
        if (!flow || !dialled.has(`${flow.protocol} ${hostPort(flow.destination, flow.destinationPort)}`))
          continue;
        const endpoint = hostPort(flow.answerer, flow.answererPort);
        counts.set(endpoint, (counts.get(endpoint) ?? 0) + 1);
      }
    }
  }

  #started(): Promise<NetlinkThread> {
    this.#cancelEnd?.();
    this.#cancelEnd = this.#options.clock.schedule(IDLE_MS, () => void this.close());
    this.#thread ??= NetlinkThread.start();
    return this.#thread;
  }
}

interface FlowFilter {
  readonly protocol: Protocol;
  readonly port?: number;
}

function whatIsDialled(service: ObjectKey, subject: FamilySubject) {
  const { plan, host } = subject;
  const frontends: (Frontend & { readonly protocol: Protocol })[] = subject
    .portsOf(service)
    .flatMap(({ id }) => {
      const servicePort = plan.servicePorts.get(id);
      return (servicePort?.frontends ?? []).map((frontend) => ({
        ...frontend,
        protocol: servicePort?.protocol ?? 'TCP',
      }));
    });
  const filters = new Map<string, FlowFilter>();
  const dialled = new Set<string>();
  for (const { address, port, protocol } of frontends) {
    filters.set(`${protocol} ${port}`, { protocol, port });
    for (const ip of address === undefined ? host.addresses : [address])
      dialled.add(`${protocol} ${hostPort(ip, port)}`);
  }
  const protocols = [...new Set(frontends.map(({ protocol }) => protocol))];
  const narrow = [...filters.values()];
  const wide = protocols.map((protocol): FlowFilter => ({ protocol }));
  return { questions: narrow.length <= MOST_QUESTIONS ? narrow : wide, dialled };
}
