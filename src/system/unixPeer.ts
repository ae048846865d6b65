/** Connecting to an abstract unix socket, and who listens there in the kernel's word. Node has no way to ask. */
import { constants } from 'node:os';
import { JunctionError } from '../errors.ts';
import { errnoName, libc } from './libc.ts';

export interface Peer {
  /** The connection; whoever asked closes it. */
  readonly fd: number;
  /** In our pid namespace; 0 where it cannot be seen from here. */
  readonly pid: number;
  readonly uid: number;
}

const AF_UNIX = 1;
const SOCK_STREAM = 1;
const SOCK_CLOEXEC = 0o2000000;
const SOCK_NONBLOCK = 0o4000;
const SOL_SOCKET = 1;
const SO_PEERCRED = 17;

/** `undefined`: nobody listens. `path` begins with a NUL. */
export function connectUnix(path: string): Peer | undefined {
  const { socket, connect, close, errno } = libc();
  const fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) throw failed('make a unix socket', errno());
  const address = Uint8Array.from([
    ...new Uint8Array(new Uint16Array([AF_UNIX]).buffer),
    ...Buffer.from(path, 'latin1'),
  ]);
  if (connect(fd, address, address.length) === 0) return { fd, ...credentials(fd) };
  const code = errno();
  close(fd);
  // EAGAIN: its backlog is full, so somebody is there who will be asked again.
  if (code === constants.errno.ECONNREFUSED || code === constants.errno.EAGAIN) return undefined;
  throw failed('connect to a unix socket', code);
}

/** `struct ucred`: pid, uid, gid. */
function credentials(fd: number): Pick<Peer, 'pid' | 'uid'> {
  const { getsockopt, close, errno } = libc();
  const credential = new Int32Array(3);
  const length = new Uint32Array([credential.byteLength]);
  const bytes = new Uint8Array(credential.buffer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, bytes, new Uint8Array(length.buffer)) !== 0) {
    const code = errno();
    close(fd);
    throw failed('ask for the credentials of a unix socket', code);
  }
  const [pid = 0, uid = 0] = credential;
  return { pid, uid };
}

function failed(what: string, code: number): JunctionError {
  return new JunctionError('UNIX_SOCKET_FAILED', `cannot ${what}: ${errnoName(code)}`);
}
