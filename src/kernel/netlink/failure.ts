/** What goes wrong between us and the kernel, as opposed to what the kernel refuses. */
import { JunctionError } from '../../errors.ts';
import { errnoName } from '../libc.ts';

export function netlinkFailed(what: string, errno: number): JunctionError {
  return new JunctionError('NETLINK_FAILED', `netlink: ${what}: ${errnoName(errno)}`);
}

/** The kernel had more to say than the socket's buffer holds. What was done is done; nobody knows what. */
export class AnswersLost extends JunctionError {
  constructor() {
    super('NETLINK_FAILED', 'netlink: answers were lost, because the buffer of the socket was full: ENOBUFS');
  }
}
