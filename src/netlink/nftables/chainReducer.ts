/** Chains that are dumped, reduced to what tells them apart: 40,000 of them are 3 MB of messages, and 1 MB of text. */
import { attributeEnd } from '../attributes.ts';
import {
  align,
  ATTRIBUTE_HEADER_BYTES,
  decodeErrno,
  forEachMessage,
  HEADER_BYTES,
  isEnd,
  LITTLE_ENDIAN,
  NLA_TYPE_MASK,
  NLM_F_DUMP_INTR,
} from '../codec.ts';
import { decodeText } from '../kinds.ts';
import { NFGENMSG_BYTES } from '../generic.ts';

export interface DumpedChain {
  readonly table: string;
  readonly name: string;
  /** Of a base chain: `ACCEPT` or `DROP`. */
  readonly policy: string | undefined;
}

export interface ReducedChains {
  /** 0 where the kernel answered. */
  readonly errno: number;
  /** Something changed during the dump: ask again. */
  readonly interrupted: boolean;
  readonly chains: readonly DumpedChain[];
}

/** linux/netfilter/nf_tables.h, linux/netfilter.h */
const NFTA_CHAIN_TABLE = 1;
const NFTA_CHAIN_NAME = 3;
const NFTA_CHAIN_HOOK = 4;
const NFTA_CHAIN_POLICY = 5;
const NF_ACCEPT = 1;
/** No name has it. */
const SEPARATOR = '\0';
const FIELDS = 3;

export class ChainReducer {
  readonly #fields: string[] = [];
  #errno = 0;
  #interrupted = false;

  add(datagram: Uint8Array): void {
    forEachMessage(datagram, (view, offset, length) => {
      const payload = datagram.subarray(offset + HEADER_BYTES, offset + length);
      if ((view.getUint16(offset + 6, LITTLE_ENDIAN) & NLM_F_DUMP_INTR) !== 0) this.#interrupted = true;
      if (!isEnd(view.getUint16(offset + 4, LITTLE_ENDIAN)))
        this.#take(view, offset + HEADER_BYTES + NFGENMSG_BYTES, offset + length, datagram);
      else if (payload.length > 0) this.#errno = decodeErrno(payload);
    });
  }

  /** By hand, for a table of all attributes takes five times as long. */
  #take(view: DataView, start: number, end: number, datagram: Uint8Array): void {
    let table = '';
    let name = '';
    let isBase = false;
    let policy = NF_ACCEPT;
    for (let at = start; at < end; ) {
      const valueEnd = attributeEnd(view, at, end);
      const value = at + ATTRIBUTE_HEADER_BYTES;
      switch (view.getUint16(at + 2, LITTLE_ENDIAN) & NLA_TYPE_MASK) {
        case NFTA_CHAIN_TABLE:
          table = decodeText(datagram.subarray(value, valueEnd));
          break;
        case NFTA_CHAIN_NAME:
          name = decodeText(datagram.subarray(value, valueEnd));
          break;
        case NFTA_CHAIN_HOOK:
          isBase = true;
          break;
        case NFTA_CHAIN_POLICY:
          policy = valueEnd - value >= 4 ? view.getUint32(value) : NF_ACCEPT;
          break;
        default:
      }
      at = align(valueEnd);
    }
    this.#fields.push(table, name, isBase ? (policy === NF_ACCEPT ? 'ACCEPT' : 'DROP') : '');
  }

  finish(): Uint8Array<ArrayBuffer> {
    const fields = [this.#errno, this.#interrupted ? 1 : 0, ...this.#fields];
    return new TextEncoder().encode(fields.join(SEPARATOR));
  }
}

/** What `ChainReducer` made of them, in another thread. */
export function readReducedChains(bytes: Uint8Array): ReducedChains {
  const [errno, interrupted, ...fields] = new TextDecoder().decode(bytes).split(SEPARATOR);
  const chains: DumpedChain[] = [];
  for (let at = 0; at + FIELDS <= fields.length; at += FIELDS) {
    const [table = '', name = '', policy = ''] = fields.slice(at, at + FIELDS);
    chains.push({ table, name, policy: policy === '' ? undefined : policy });
  }
  return { errno: Number(errno), interrupted: interrupted === '1', chains };
}
