/** What goes wrong between us and the kernel, as opposed to what the kernel refuses. */
import { JunctionError } from '../errors.ts';
import { errnoName } from '../system/libc.ts';

export function netlinkFailed(what: string, errno: number): JunctionError {
  return new JunctionError('NETLINK_FAILED', `netlink: ${what}: ${errnoName(errno)}`);
}

/** The kernel had more to say than the socket's buffer holds. What was done is done; nobody knows what. */
export class AnswersLost extends JunctionError {
  constructor(why = 'the buffer of the socket was full: ENOBUFS') {
    super('NETLINK_FAILED', `netlink: answers were lost, because ${why}`);
  }
}

export function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
