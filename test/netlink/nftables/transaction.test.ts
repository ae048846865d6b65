/** How changes become one datagram, and what the answers to it mean. */
import { describe, expect, it } from 'vitest';
import { Sequence } from '../../../src/netlink/request.ts';
import { NLM_F_ACK } from '../../../src/netlink/codec.ts';
import { ElementList } from '../../../src/netlink/nftables/elements.ts';
import {
  type NetlinkTransaction,
  type NftOperation,
  transaction,
} from '../../../src/netlink/nftables/transaction.ts';
import { inWords } from '../../system/support/bytes.ts';
import { directChannel } from '../support/directChannel.ts';
import { KernelPeer, type Script, acknowledge, refusal } from '../support/kernelPeer.ts';

const PLACE = { family: 'ip', table: 't' } as const;
const BATCH_BEGIN = 0x10;
const NEWTABLE = 0x0a00;
const NEWCHAIN = 0x0a03;
const NEWSETELEM = 0x0a0c;
const ENOENT = 2;
const EBUSY = 16;
const ENOMEM = 12;

const table: NftOperation = { kind: 'addTable', ...PLACE };
const chain: NftOperation = { kind: 'addChain', ...PLACE, chain: 'c' };
const elements = (count: number): NftOperation => {
  const list = new ElementList();
  for (let index = 0; index < count; index++) list.begin().index(index).end();
  return { kind: 'addElements', ...PLACE, set: 's', elements: list };
};

function hexOf(written: NetlinkTransaction): string {
  return inWords(Buffer.from(written(new Sequence()).exchange.bytes).toString('hex'));
}

describe('one datagram', () => {
  it('begins, and ends; the last operation is acknowledged', () => {
    expect(hexOf(transaction([table, chain]))).toBe(
      [
        '14000000 10000100 01000000 00000000 0000000a', // BATCH_BEGIN of subsystem 10
        '24000000 000a0104 02000000 00000000 02000000', // NEWTABLE, create
        '06000100 74000000 08000200 00000000',
        '24000000 030a0504 03000000 00000000 02000000', // NEWCHAIN, create, acknowledge
        '06000100 74000000 06000300 63000000',
        '14000000 11000100 04000000 00000000 0000000a', // BATCH_END
      ].join(' '),
    );
  });
});

describe('a commit', () => {
  const commit = async (script: Script, operations: readonly NftOperation[]): Promise<unknown> =>
    directChannel(new KernelPeer(script)).commit(transaction(operations));
  /** Says so of the messages of one type, and acknowledges who asks for it. */
  const refusing =
    (type: number, errno: number): Script =>
    (request) =>
      request.type === type ? [refusal(request, errno)] : acknowledge(request);

  it('is done when the last is acknowledged', async () => {
    const peer = new KernelPeer(acknowledge);
    expect(await directChannel(peer).commit(transaction([table, elements(30_000), chain]))).toEqual({
      state: 'done',
    });
    expect(peer.datagrams).toHaveLength(1);
    expect(peer.requests.filter(({ flags }) => (flags & NLM_F_ACK) !== 0).map(({ type }) => type)).toEqual([
      NEWCHAIN,
    ]);
  });

  it('that is refused tells which operations are to blame', async () => {
    expect(await commit(refusing(NEWTABLE, EBUSY), [table, chain, table])).toEqual({
      state: 'refused',
      refusals: [
        { operation: 0, errno: EBUSY, name: 'EBUSY' },
        { operation: 2, errno: EBUSY, name: 'EBUSY' },
      ],
    });
  });

  it('that has elements in many messages tells of their operation', async () => {
    let count = 0;
    const second: Script = (request) =>
      request.type === NEWSETELEM && ++count === 2 ? [refusal(request, ENOENT)] : acknowledge(request);
    expect(await commit(second, [table, elements(30_000), chain])).toEqual({
      state: 'refused',
      refusals: [{ operation: 1, errno: ENOENT, name: 'ENOENT' }],
    });
  });

  it('that is refused as a whole says so, although nothing else is answered', async () => {
    const script: Script = (request) => (request.type === BATCH_BEGIN ? [refusal(request, ENOMEM)] : []);
    expect(await commit(script, [table, chain])).toEqual({
      state: 'refused',
      refusals: [{ operation: undefined, errno: ENOMEM, name: 'ENOMEM' }],
    });
  });

  it('of nothing asks nothing', async () => {
    const peer = new KernelPeer(acknowledge);
    expect(await directChannel(peer).commit(transaction([]))).toEqual({ state: 'done' });
    expect(peer.requests).toEqual([]);
  });

  it('takes no answer to the one before for its own', async () => {
    // The kernel refuses the whole and acknowledges the last one nevertheless: that answer comes too late.
    let isFirst = true;
    const script: Script = (request) => {
      if (request.type !== BATCH_BEGIN || !isFirst) return acknowledge(request);
      isFirst = false;
      return [refusal(request, ENOMEM)];
    };
    const channel = directChannel(new KernelPeer(script));
    expect(await channel.commit(transaction([table]))).toMatchObject({ state: 'refused' });
    expect(await channel.commit(transaction([table, chain]))).toEqual({ state: 'done' });
  });
});
