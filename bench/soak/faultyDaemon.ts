/**
 * The real program with a bad way to the kernel: now and then a transaction is refused, or its answer is lost after it
 * was done, or the table cannot be read. SIGPWR ends the thread that speaks netlink. SIGUSR2 puts an end to all of it.
 */
import { createRequire, syncBuiltinESMExports } from 'node:module';
import type { Worker } from 'node:worker_threads';
import { NetlinkNftClient } from '../../src/modes/nftables/client.ts';

/** One in so many. */
const REFUSED = 25;
const LOST = 60;
const UNREADABLE = 15;

let isCalm = false;
process.on('SIGUSR2', () => {
  isCalm = true;
  tell('calm from now on');
});

function tell(what: string): void {
  process.stderr.write(`soak: ${what}\n`);
}

function happens(oneIn: number): boolean {
  return !isCalm && Math.random() * oneIn < 1;
}

const client = NetlinkNftClient.prototype;
/** What the client itself would have done. */
const real = Object.getOwnPropertyDescriptors(client);
const commit = given(real.commit.value);
const inspect = given(real.inspect.value);
const affinityEntries = given(real.affinityEntries.value);

function given<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the client has other methods than it had');
  return value;
}

client.commit = async function (transaction) {
  if (happens(REFUSED)) {
    tell('refused');
    return { state: 'refused', name: 'ENOMEM', operation: transaction[0] };
  }
  const outcome = await commit.call(this, transaction);
  if (!happens(LOST)) return outcome;
  tell('answer lost');
  throw new Error('soak: the answer of the kernel is lost');
};

client.inspect = async function (wanted, only) {
  if (happens(UNREADABLE)) {
    tell('unreadable');
    throw new Error('soak: the table cannot be read');
  }
  return inspect.call(this, wanted, only);
};

client.affinityEntries = async function (protocol) {
  if (happens(UNREADABLE)) {
    tell('clients unreadable');
    throw new Error('soak: clients cannot be read');
  }
  return affinityEntries.call(this, protocol);
};

const workers = new Set<Worker>();
const threads = createRequire(import.meta.url)('node:worker_threads') as { Worker: typeof Worker };
threads.Worker = class extends threads.Worker {
  constructor(...args: ConstructorParameters<typeof Worker>) {
    super(...args);
    workers.add(this);
    this.once('exit', () => workers.delete(this));
  }
};
syncBuiltinESMExports();
process.on('SIGPWR', () => {
  const [first] = workers;
  if (!first || isCalm) return;
  tell('thread ended');
  void first.terminate();
});

await import('../../src/cli/bin.ts');
