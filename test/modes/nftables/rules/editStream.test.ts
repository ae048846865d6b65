import { describe, expect, it } from 'vitest';
import { Committer, EditStream } from '../../../../src/modes/nftables/rules/committer.ts';
import type { ElementEdit } from '../../../../src/modes/nftables/rules/table.ts';
import type {
  NftClient,
  TableSet,
  TableTransaction,
  TransactionOutcome,
} from '../../../../src/modes/nftables/rules/table.ts';
import { type Ip, parseIp } from '../../../../src/model/ip.ts';

const SET: TableSet = { name: 'service-ips', key: ['address'] };
const SETS = new Map([[SET.name, SET]]);

function ip(number: number): Ip {
  const parsed = parseIp(`10.96.${number >> 8}.${number & 255}`);
  if (!parsed) throw new Error('not an address');
  return parsed;
}

/** A service port that has so many addresses. */
function edit(owner: string, first: number, count: number): ElementEdit {
  const adds = Array.from({ length: count }, (_, index) => ({
    set: SET.name,
    key: { address: ip(first + index) },
  }));
  return { owner, removes: [], adds };
}

/** Takes transactions one by one, when it is told to. */
class SlowClient implements Pick<NftClient, 'commit'> {
  readonly sizes: number[] = [];
  readonly #waiting: ((outcome: TransactionOutcome) => void)[] = [];

  commit(transaction: TableTransaction): Promise<TransactionOutcome> {
    this.sizes.push(
      transaction.reduce((sum, each) => sum + ('elements' in each ? each.elements.length : 0), 0),
    );
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  answer(outcome: TransactionOutcome = { state: 'done' }): void {
    this.#waiting.shift()?.(outcome);
  }
}

function streamInto(client: SlowClient): EditStream {
  const whole: Pick<NftClient, 'commit'> = { commit: (transaction) => client.commit(transaction) };
  return new EditStream(new Committer(whole, () => 0), SETS);
}

describe('a stream of edits', () => {
  it('waits until a transaction is full', () => {
    const client = new SlowClient();
    const stream = streamInto(client);
    expect(stream.add(edit('a', 0, 10))).toBeUndefined();
    expect(client.sizes).toEqual([]);
  });

  it('makes the next one while the kernel has the last', async () => {
    const client = new SlowClient();
    const stream = streamInto(client);
    await stream.add(edit('a', 0, 2000));
    await expect.poll(() => client.sizes).toEqual([2000]);
    expect(stream.add(edit('b', 5000, 10))).toBeUndefined();
    const flushed = stream.flush();
    await Promise.resolve();
    expect(client.sizes).toEqual([2000]);
    client.answer();
    await expect.poll(() => client.sizes).toEqual([2000, 10]);
    client.answer();
    await flushed;
    expect(stream.elements).toBe(2010);
  });

  it('knows whose edit was refused', async () => {
    const client = new SlowClient();
    const stream = streamInto(client);
    void stream.add(edit('a', 0, 1));
    const flushed = stream.flush();
    await expect.poll(() => client.sizes).toEqual([1]);
    client.answer({ state: 'refused', name: 'ENOSPC', operation: undefined });
    await flushed;
    expect([...stream.refused.keys()]).toEqual(['a']);
  });

  it('fails with a refusal that is nobody’s in particular', async () => {
    const client = new SlowClient();
    const stream = streamInto(client);
    void stream.add({ ...edit('a', 0, 1), owner: undefined });
    const flushed = stream.flush();
    await expect.poll(() => client.sizes).toEqual([1]);
    client.answer({ state: 'refused', name: 'ENOSPC', operation: undefined });
    await expect(flushed).rejects.toMatchObject({ code: 'NFTABLES_REFUSED' });
  });

  it('has nothing to do for an empty edit', async () => {
    const client = new SlowClient();
    const stream = streamInto(client);
    expect(stream.add({ owner: undefined, removes: [], adds: [] })).toBeUndefined();
    await stream.flush();
    expect(client.sizes).toEqual([]);
  });
});
