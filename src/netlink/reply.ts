/** What the messages of an answer mean. */
import { JunctionError } from '../errors.ts';
import { errnoName } from '../system/libc.ts';
import {
  type Message,
  NLMSG_DONE,
  NLMSG_ERROR,
  NLMSG_NOOP,
  NLMSG_OVERRUN,
  NLM_F_DUMP_INTR,
  decodeErrno,
} from './codec.ts';

export type NetlinkReply =
  | {
      readonly kind: 'answered';
      readonly messages: readonly Message[];
      /** The kernel's objects changed during the dump: ask again. */
      readonly interrupted: boolean;
    }
  | NetlinkRefusal;

/** The kernel said no: `{ errno: 16, name: 'EBUSY' }`. */
export interface NetlinkRefusal {
  readonly kind: 'refused';
  readonly errno: number;
  readonly name: string;
}

/** How a reply ended whose messages were handed out before. */
export type NetlinkEnd = { readonly kind: 'answered'; readonly interrupted: boolean } | NetlinkRefusal;

/** Follows the answer to one request, message by message. */
export class ReplyReader {
  #interrupted = false;
  #end: NetlinkEnd | undefined;

  /** Once it is known. */
  get end(): NetlinkEnd | undefined {
    return this.#end;
  }

  /** Answers whether the message is one that was asked for, rather than one about the answer. */
  take(message: Message): boolean {
    if (message.type === NLMSG_NOOP || this.#end) return false;
    if (message.type === NLMSG_OVERRUN)
      throw new JunctionError('NETLINK_FAILED', 'netlink: the kernel says that answers were lost');
    this.#interrupted ||= (message.flags & NLM_F_DUMP_INTR) !== 0;
    if (!isEnd(message)) return true;
    const errno = message.payload.length === 0 ? 0 : decodeErrno(message.payload);
    this.#end =
      errno === 0
        ? { kind: 'answered', interrupted: this.#interrupted }
        : { kind: 'refused', errno, name: errnoName(errno) };
    return false;
  }
}

/** An acknowledgement, a refusal, or the end of a dump. */
export function isEnd({ type }: Pick<Message, 'type'>): boolean {
  return type === NLMSG_ERROR || type === NLMSG_DONE;
}
