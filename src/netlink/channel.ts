/**
 * One protocol's way to the kernel, whatever thread its socket lives in. Messages are written and read here; what is
 * sent is bytes. Long work is cut into pieces, between which this thread does other things, and of which a few are on
 * their way at any time.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { JunctionError } from '../errors.ts';
import { type Change, type ChangeOutcome, changeJob } from './batch.ts';
import { type Message, MessageWriter, NLM_F_DUMP, decodeMessages, malformedMessage } from './codec.ts';
import { type ChainsReply, type RulesReply, chainsJob, digestJob } from './nftables/digestJob.ts';
import type { ElementList } from './nftables/elementList.ts';
import type { CommitReply, NetlinkTransaction } from './nftables/transaction.ts';
import {
  type Job,
  type NetlinkRefusal,
  type NetlinkReply,
  type NetlinkRequest,
  type NetlinkEnd,
  NetlinkSocket,
  ReplyReader,
  Sequence,
  requestJob,
  writeRequest,
} from './socket.ts';
import {
  type ChainQuestionList,
  type ChainQuestions,
  type ComparedChain,
  compareChains,
  readCompared,
} from './worker/compareRules.ts';
import { type Differing, type Lookup, lookUpAll, readDiffering } from './worker/lookUp.ts';
import { type ScanFilter, scanTable } from './worker/scan.ts';
import { runToEnd } from '../time/timeSlice.ts';

export interface NetlinkChannel {
  /** Outcomes in the order of the changes; one that is refused stops none of the others. */
  apply(changes: readonly Change[]): Promise<readonly ChangeOutcome[]>;
  request(request: NetlinkRequest): Promise<NetlinkReply>;
  /** Replies in the order of the requests. */
  requestAll(requests: readonly NetlinkRequest[]): Promise<readonly NetlinkReply[]>;
  /** Whole tables, one answer per request; one that changed while it was read is read again. */
  dumpAll(requests: readonly NetlinkRequest[]): Promise<readonly DumpReply[]>;
}

/** `examined`: how many objects the filter looked at. */
export type ScanEnd = NetlinkEnd & { readonly examined: number };

/** For netfilter, which has transactions, and tables too large to be read in one go. */
export interface TransactionChannel extends NetlinkChannel {
  /** All of it or nothing, in one datagram. One that is larger than the kernel takes fails with EMSGSIZE. */
  commit(transaction: NetlinkTransaction): Promise<CommitReply>;
  /** How many of them the kernel took. */
  readonly committed: number;
  /** Of each list, the elements that the kernel lacks or has otherwise. */
  lookUp(lists: readonly ElementsAt[]): Promise<readonly (readonly Differing[])[]>;
  /**
   * A whole table, between the jobs of others, of which none waits for it: what changes meanwhile may be in it or not.
   * `take` is given what passes the filter while it comes.
   */
  scan(
    request: NetlinkRequest,
    filter: ScanFilter | undefined,
    take: (messages: readonly Message[]) => void,
  ): Promise<ScanEnd>;
}

/** Elements of a set, and the request for all that it has. */
interface ElementsAt {
  readonly request: NetlinkRequest;
  readonly elements: ElementList;
}

let committedByAll = 0;

/** How many transactions the kernel took of this process, by whatever channel. */
export function committedByProcess(): number {
  return committedByAll;
}

export interface RulesChannel extends TransactionChannel {
  /** Dumps of rules, of which the thread that reads them returns digests. Changes do not wait for them. */
  digestRules(requests: readonly NetlinkRequest[]): Promise<readonly RulesReply[]>;
  /** Compares the rules of chains, in the same way. Returns those that differ. */
  compareChains(questions: ChainQuestionList): Promise<readonly ComparedChain[]>;
  /** A dump of chains, in the same way, but that changes wait for it: 40,000 take 30 ms, or 0.3 s on a busy machine. */
  listChains(request: NetlinkRequest): Promise<ChainsReply>;
}

export type DumpReply = { readonly kind: 'answered'; readonly messages: readonly Message[] } | NetlinkRefusal;

/** Sends the bytes, and gives the answers away while they come. Resolves when all have come. */
type Perform = (job: Job<unknown>) => Promise<void>;

/** What the thread that owns the sockets does with answers, so that fewer of them have to be passed on. */
interface ReducedJobs {
  lookUp(lookups: readonly Lookup[]): Promise<Uint8Array>;
  compare(questions: ChainQuestions): Promise<Uint8Array>;
  /** Returns how many objects the filter looked at. */
  scan(
    request: Uint8Array,
    filter: ScanFilter | undefined,
    take: (bytes: Uint8Array) => void,
  ): Promise<number>;
}

/** Writing so many changes or requests takes a few milliseconds. */
const CHANGES_PER_PIECE = 512;
const REQUESTS_PER_PIECE = 256;
/** Enough that the worker always has the next one, and few enough to stop soon after a failure. */
const PIECES_UNDER_WAY = 4;
/** Only a runaway program changes a table faster than it can be read. */
const READINGS = 10;

export class JobChannel implements RulesChannel {
  readonly #perform: Perform;
  readonly #reduced: ReducedJobs;
  readonly #sequence: Sequence;
  #committed = 0;

  constructor(perform: Perform, reduced: ReducedJobs, sequence = new Sequence()) {
    this.#perform = perform;
    this.#reduced = reduced;
    this.#sequence = sequence;
  }

  async apply(changes: readonly Change[]): Promise<readonly ChangeOutcome[]> {
    return this.#inPieces(changes, CHANGES_PER_PIECE, changeJob);
  }

  async commit(transaction: NetlinkTransaction): Promise<CommitReply> {
    const job = transaction(this.#sequence);
    const reply = await this.#do(job);
    if (reply.state === 'done' && job.exchanges.length > 0) {
      this.#committed++;
      committedByAll++;
    }
    return reply;
  }

  get committed(): number {
    return this.#committed;
  }

  async request(request: NetlinkRequest): Promise<NetlinkReply> {
    const [reply] = await this.#do(requestJob([request], this.#sequence));
    if (!reply) throw malformedMessage('no answer');
    return reply;
  }

  requestAll(requests: readonly NetlinkRequest[]): Promise<readonly NetlinkReply[]> {
    return this.#inPieces(requests, REQUESTS_PER_PIECE, requestJob);
  }

  async dumpAll(requests: readonly NetlinkRequest[]): Promise<readonly DumpReply[]> {
    return readUntilStable(requests.map(asDump), 'the table', async (left) => {
      const replies = await this.#inPieces(left, REQUESTS_PER_PIECE, requestJob);
      return replies.map((reply) => (reply.kind === 'answered' && reply.interrupted ? undefined : reply));
    });
  }

  digestRules(requests: readonly NetlinkRequest[]): Promise<readonly RulesReply[]> {
    return this.#inPieces(requests.map(asDump), REQUESTS_PER_PIECE, digestJob);
  }

  async compareChains(questions: ChainQuestionList): Promise<readonly ComparedChain[]> {
    return readCompared(await this.#reduced.compare(questions.finish(this.#sequence)));
  }

  listChains(request: NetlinkRequest): Promise<ChainsReply> {
    return this.#do(chainsJob(asDump(request), this.#sequence));
  }

  async lookUp(lists: readonly ElementsAt[]): Promise<readonly (readonly Differing[])[]> {
    const lookups = lists.map(({ elements, request }) => ({
      request: this.#write(request),
      elements: elements.finish().slice(),
    }));
    return lookups.length === 0 ? [] : readDiffering(await this.#reduced.lookUp(lookups));
  }

  async scan(
    request: NetlinkRequest,
    filter: ScanFilter | undefined,
    take: (messages: readonly Message[]) => void,
  ): Promise<ScanEnd> {
    const reader = new ReplyReader();
    const bytes = this.#write(asDump(request));
    const examined = await this.#reduced.scan(bytes, filter, (part) => {
      for (const message of decodeMessages(part)) reader.take(message);
      const messages = reader.messages.splice(0);
      if (messages.length > 0) take(messages);
    });
    if (!reader.end) throw malformedMessage('an answer without an end');
    return { ...reader.end, examined };
  }

  #write(request: NetlinkRequest): Uint8Array {
    const writer = new MessageWriter(256);
    writeRequest(writer, request, this.#sequence.next());
    return writer.finish().slice();
  }

  /** Results in the order of the items. The first failure stops those that are not under way yet. */
  async #inPieces<Item, Result>(
    items: readonly Item[],
    size: number,
    jobOf: (piece: readonly Item[], sequence: Sequence) => Job<readonly Result[]>,
  ): Promise<readonly Result[]> {
    const results: Promise<readonly Result[]>[] = [];
    try {
      for (let from = 0; from < items.length; from += size) {
        if (from > 0) await nextTurn();
        await results[results.length - PIECES_UNDER_WAY];
        const result = this.#do(jobOf(items.slice(from, from + size), this.#sequence));
        result.catch(() => undefined); // thrown below, after those before it
        results.push(result);
      }
      return (await Promise.all(results)).flat();
    } finally {
      await Promise.allSettled(results);
    }
  }

  async #do<Result>(job: Job<Result>): Promise<Result> {
    if (job.exchanges.length > 0) await this.#perform(job);
    return job.result();
  }
}

function asDump(request: NetlinkRequest): NetlinkRequest {
  return { ...request, flags: request.flags | NLM_F_DUMP };
}

/** In the calling thread, which waits meanwhile: for tests and small tools. */
export function directChannel(socket: NetlinkSocket): RulesChannel {
  const reduced: ReducedJobs = {
    lookUp: async (lookups) => socket.use((port) => lookUpAll(port, lookups)),
    compare: async (questions) => socket.use((port) => compareChains(port, questions)),
    scan: async (request, filter, take) => {
      const parts: Uint8Array[] = [];
      const steps = socket.use((port) => scanTable(port, request, filter, (bytes) => parts.push(bytes)));
      const examined = runToEnd(steps);
      parts.forEach(take); // who takes them may use the socket again
      return examined;
    },
  };
  return new JobChannel(async (job) => void socket.perform(job), reduced, socket.sequence);
}

/** `directChannel` of a socket that is closed at the end. */
export async function withChannel<T>(
  protocol: number,
  use: (channel: RulesChannel) => Promise<T>,
): Promise<T> {
  const socket = NetlinkSocket.open(protocol);
  try {
    return await use(directChannel(socket));
  } finally {
    socket.close();
  }
}

/** Reads what is asked for, and again what changed meanwhile, for which `read` returns `undefined`. */
export async function readUntilStable<Asked, Answer>(
  asked: readonly Asked[],
  what: string,
  read: (left: readonly Asked[]) => Promise<readonly (Answer | undefined)[]>,
): Promise<readonly Answer[]> {
  const answers: Answer[] = [];
  let left = [...asked.entries()];
  for (let attempt = 0; left.length > 0; attempt++) {
    if (attempt === READINGS)
      throw new JunctionError(
        'NETLINK_FAILED',
        `netlink: ${what} changed during each of ${READINGS} readings`,
      );
    const found = await read(left.map(([, each]) => each));
    left = left.filter(([index], at) => {
      const answer = found[at];
      if (answer !== undefined) answers[index] = answer;
      return answer === undefined;
    });
  }
  return answers;
}

/** Of an answer that a caller has no other use for. `what`: `the links`. */
export function messagesOf(reply: DumpReply | undefined, what: string): readonly Message[] {
  if (reply?.kind === 'answered') return reply.messages;
  throw new JunctionError('NETLINK_FAILED', `netlink: cannot list ${what}: ${reply?.name ?? 'no answer'}`);
}
