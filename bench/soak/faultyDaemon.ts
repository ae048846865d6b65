/**
 * The real program with a bad way to the kernel: now and then a transaction is refused, or its answer is lost after it
 * was done, or the kernel cannot be read. SIGUSR2 puts an end to all of it.
 */
import { constants } from 'node:os';
import { IptablesClient } from '../../src/modes/iptables/client.ts';
import { NetlinkChannel } from '../../src/netlink/channel.ts';

/** One in so many. */
const REFUSED = 25;
const LOST = 60;
const UNREADABLE = 15;
/** Everything is read in hundreds of parts. */
const PART_UNREADABLE = 1000;

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

/** Of nf_tables, whichever mode writes there. */
const channel = NetlinkChannel.prototype;
const realChannel = Object.getOwnPropertyDescriptors(channel);
const commit = given(realChannel.commit.value);
const scan = given(realChannel.scan.value);

/** Of the programs of iptables. */
const client = IptablesClient.prototype;
const realClient = Object.getOwnPropertyDescriptors(client);
const restore = given(realClient.restore.value);
const readChain = given(realClient.readChain.value);

function given<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the client has other methods than it had');
  return value;
}

channel.commit = async function (transaction) {
  if (happens(REFUSED)) {
    tell('refused');
    const refusal = { errno: constants.errno.ENOMEM, name: 'ENOMEM', operation: undefined };
    return { state: 'refused', refusals: [refusal] };
  }
  const outcome = await commit.call(this, transaction);
  if (!happens(LOST)) return outcome;
  tell('answer lost');
  throw new Error('soak: the answer of the kernel is lost');
};

channel.scan = async function (request, take) {
  if (happens(PART_UNREADABLE)) {
    tell('unreadable');
    throw new Error('soak: the kernel cannot be read');
  }
  return scan.call(this, request, take);
};

client.restore = async function (table, input, options) {
  if (happens(REFUSED)) {
    tell('refused');
    throw new Error('soak: iptables-restore cannot be started');
  }
  await restore.call(this, table, input, options);
  if (!happens(LOST)) return;
  tell('answer lost');
  throw new Error('soak: how iptables-restore ended is lost');
};

client.readChain = async function (table, chain) {
  if (happens(UNREADABLE)) {
    tell('unreadable');
    throw new Error('soak: iptables cannot be started');
  }
  return readChain.call(this, table, chain);
};

await import('../../src/cli/bin.ts');
