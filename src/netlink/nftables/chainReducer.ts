/** Chains that are dumped, reduced to what tells them apart: 40,000 of them are 3 MB of messages, and 1 MB of text. */
import { NLM_F_DUMP_INTR, decodeErrno, decodeMessages } from '../codec.ts';
import { isEnd } from '../exchange.ts';
import { decodeChain } from './objects.ts';

export interface ListedChain {
  readonly table: string;
  readonly name: string;
  /** Of a base chain. */
  readonly policy: string | undefined;
}

export interface ReducedChains {
  /** 0 where the kernel answered. */
  readonly errno: number;
  /** Something changed during the dump: ask again. */
  readonly interrupted: boolean;
  readonly chains: readonly ListedChain[];
}

/** No name has it. */
const SEPARATOR = '\0';
const FIELDS = 3;

export class ChainReducer {
  readonly #fields: string[] = [];
  #errno = 0;
  #interrupted = false;

  add(datagram: Uint8Array): void {
    for (const { type, flags, payload } of decodeMessages(datagram)) {
      this.#interrupted ||= (flags & NLM_F_DUMP_INTR) !== 0;
      if (!isEnd(type)) {
        const { table, name, base, isBase } = decodeChain(payload);
        this.#fields.push(table, name, isBase ? (base?.policy ?? 'accept') : '');
      } else if (payload.length > 0) this.#errno = decodeErrno(payload);
    }
  }

  finish(): Uint8Array<ArrayBuffer> {
    const fields = [this.#errno, this.#interrupted ? 1 : 0, ...this.#fields];
    return new TextEncoder().encode(fields.join(SEPARATOR));
  }
}

/** What `ChainReducer` made of them, in another thread. */
export function readReducedChains(bytes: Uint8Array): ReducedChains {
  const [errno, interrupted, ...fields] = new TextDecoder().decode(bytes).split(SEPARATOR);
  const chains: ListedChain[] = [];
  for (let at = 0; at + FIELDS <= fields.length; at += FIELDS) {
    const [table = '', name = '', policy = ''] = fields.slice(at, at + FIELDS);
    chains.push({ table, name, policy: policy === '' ? undefined : policy });
  }
  return { errno: Number(errno), interrupted: interrupted === '1', chains };
}
