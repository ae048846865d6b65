/** Real packets for a row of a table, until it is clear what becomes of them. */
import type { Lab } from '../../lab/lab.ts';
import { REQUEST_TIMEOUT_MS } from '../../lab/host.ts';
import type { Outcome, Reply, Transport } from '../../lab/protocol.ts';
import { ADDRESSES, addressOf, HOST_NAMES } from '../../lab/topology.ts';
import { FAMILIES, isLoopback } from '../../src/model/ip.ts';
import { type Fate, printRow, printTarget, type Row, type Target, targetAt } from './packets.ts';
import { NODE1 } from './scenario.ts';

/** With four endpoints, the chance that one of them is not met by then is one in 10^21; a run has thousands of rows. */
const MOST_TRIES = 180;
const BATCH = 4;
/** What a busy machine answers in time. */
const ROWS_AT_ONCE = 32;
/** After which a packet without an answer is taken for dropped. */
const SILENCE_MS = 300;
/** A refusal may show only after the second SYN or INIT (see REQUEST_TIMEOUT_MS); a shorter silence proves nothing. */
const LONG_SILENCE_MS: Readonly<Record<Transport, number>> = { tcp: 1300, udp: SILENCE_MS, sctp: 700 };

export interface PacketSenderOptions {
  /** How long to wait for an answer that should come. */
  readonly answerMs?: number;
}

export class PacketSender {
  readonly #lab: Lab;
  readonly #answerMs: number;

  constructor(lab: Lab, options: PacketSenderOptions = {}) {
    this.#lab = lab;
    this.#answerMs = options.answerMs ?? REQUEST_TIMEOUT_MS;
  }

  /** Why the row's packet cannot be sent; `undefined`: it can. */
  whyNot({ inLab, transport }: Row): string | undefined {
    if (!inLab) return 'the lab cannot send such a packet';
    return transport === 'sctp' ? this.#lab.whyNoSctp : undefined;
  }

  sendable(rows: readonly Row[]): readonly Row[] {
    return rows.filter((row) => this.whyNot(row) === undefined);
  }

  /** Many rows at once; but clients that a service remembers come one by one, so that the first is the first. */
  async send(rows: readonly (readonly [Row, Fate])[]): Promise<readonly string[]> {
    const seen: string[] = [];
    for (let sent = 0; sent < rows.length; sent += ROWS_AT_ONCE)
      seen.push(...(await this.#sendAtOnce(rows.slice(sent, sent + ROWS_AT_ONCE))));
    return seen;
  }

  #sendAtOnce(rows: readonly (readonly [Row, Fate])[]): Promise<readonly string[]> {
    let before: Promise<unknown> = Promise.resolve();
    return Promise.all(
      rows.map(([row, expected]) => {
        if (expected.verdict !== 'forward' || !expected.sticky) return this.#observe(row, expected);
        const observed = before.then(() => this.#observeSticky(row, expected));
        before = observed;
        return observed;
      }),
    );
  }

  async #observe(row: Row, expected: Fate): Promise<string> {
    if (expected.verdict !== 'forward') {
      const outcomes = await this.#batch(row, 2, this.#patience(row, expected));
      return printRow(row, refusalOf(row, outcomes, expected));
    }
    const seen = new Map<string, Target>();
    for (let tries = 0; tries < MOST_TRIES; tries += BATCH) {
      for (const outcome of await this.#answers(row)) {
        if (outcome.outcome !== 'answer') return printRow(row, printFailure(outcome));
        const target = targetOf(row, outcome.reply, expected);
        seen.set(printTarget(target), target);
      }
      if (tries > 0 && seen.size >= expected.targets.length) break;
      if (expected.targets.length === 1) break;
    }
    return printRow(row, { verdict: 'forward', sticky: false, targets: [...seen.values()] });
  }

  /**
   * Nobody sends a datagram again that the kernel has lost: now and then it does, when two flows want the same place in
   * its table at once. Whoever is dropped by a rule is dropped a second time.
   */
  async #answers(row: Row): Promise<readonly Outcome[]> {
    const outcomes = await this.#batch(row, BATCH, this.#answerMs);
    const isLost = ({ outcome }: Outcome): boolean => row.transport === 'udp' && outcome === 'timeout';
    const lost = outcomes.filter(isLost).length;
    const again = lost === 1 ? await this.#batch(row, lost, this.#answerMs) : outcomes.filter(isLost);
    return [...outcomes.filter((outcome) => !isLost(outcome)), ...again];
  }

  /** Prints as expected where every answer comes from one of the expected targets. */
  async #observeSticky(row: Row, expected: Fate): Promise<string> {
    const outcomes = [
      ...(await this.#batch(row, 1, this.#answerMs)),
      ...(await this.#batch(row, 2 * BATCH, this.#answerMs)),
    ];
    const seen = new Set<string>();
    for (const outcome of outcomes) {
      if (outcome.outcome !== 'answer') return printRow(row, printFailure(outcome));
      seen.add(printTarget(targetOf(row, outcome.reply, expected)));
    }
    const [only = '', ...others] = seen;
    const known =
      expected.verdict === 'forward' && expected.targets.some((each) => printTarget(each) === only);
    if (known && others.length === 0) return printRow(row, expected);
    return printRow(row, `in turn ${[...seen].join(' ')}`);
  }

  #batch(row: Row, count: number, timeoutMs: number): Promise<readonly Outcome[]> {
    const { transport, packet } = row;
    const from = this.#lab.host(row.host);
    // An SCTP socket without an address of its own tells its peer all that the host has.
    const isFirst = packet.source === addressOf(row.host, row.family);
    const named = !isFirst || packet.source === packet.destination || transport === 'sctp';
    return Promise.all(
      Array.from({ length: count }, () =>
        from.request(transport, packet.destination, packet.port, {
          timeoutMs,
          ...(named && { source: packet.source }),
        }),
      ),
    );
  }

  #patience(row: Row, { verdict }: Fate): number {
    if (verdict === 'reject' || (verdict === 'pass' && isSomebodys(row))) return this.#answerMs;
    // IPv4 tells a TCP socket at once.
    return row.family === 'IPv4' && row.transport === 'tcp' ? SILENCE_MS : LONG_SILENCE_MS[row.transport];
  }
}

/** What the network does with a packet that nobody translates: a host refuses what it does not serve. */
function isPass(row: Row, { outcome }: Outcome): boolean {
  return outcome === (isSomebodys(row) ? 'refused' : 'timeout');
}

function isSomebodys({ packet }: Row): boolean {
  return isLoopback(packet.destination) || EVERYBODY.has(packet.destination);
}

const EVERYBODY: ReadonlySet<string> = new Set(
  HOST_NAMES.flatMap((name) => FAMILIES.flatMap((family) => ADDRESSES[name][family])),
);

function refusalOf(row: Row, outcomes: readonly Outcome[], expected: Fate): string {
  const seen = new Set(
    outcomes.map((outcome) => {
      if (outcome.outcome === 'answer') return printTarget(targetOf(row, outcome.reply, expected));
      if (expected.verdict === 'pass' && isPass(row, outcome)) return 'pass';
      return printFailure(outcome);
    }),
  );
  return [...seen].sort().join(' ');
}

function printFailure(outcome: Exclude<Outcome, { outcome: 'answer' }>): string {
  if (outcome.outcome === 'unreachable') return `unreachable (${outcome.code})`;
  return outcome.outcome === 'refused' ? 'reject' : 'drop';
}

/** What node1 itself sends comes from node1 either way: there the row is believed. */
function targetOf(row: Row, reply: Reply, expected: Fate): Target {
  const isNode1 = NODE1.addresses.some((address) => address === reply.peer);
  const seen = targetAt(row, reply.address, reply.port, isNode1);
  if (!isNode1 && reply.peer !== row.packet.source)
    return { ...seen, host: `${seen.host} (seen ${reply.peer})` };
  if (row.host !== 'node1' || !isNode1 || expected.verdict !== 'forward') return seen;
  const wanted = expected.targets.find(({ host, port }) => host === seen.host && port === seen.port);
  return wanted ?? seen;
}
