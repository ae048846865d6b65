/** Who has a port, as far as /proc tells. Only asked when something has failed already, so it may be slow. */
import { readFileSync } from 'node:fs';
import { type Ip, parseIp } from '../model/ip.ts';
import type { PortAddress } from './boundPort.ts';
import { attempt, type Holder, socketHolders } from './holder.ts';

interface ListedSocket {
  readonly ip: Ip;
  readonly port: number;
  readonly listens: boolean;
  readonly inode: string;
}

/** In one walk over all processes, however many ports. Ports whose owner cannot be seen are left out. */
export function portOwners(ports: readonly PortAddress[]): ReadonlyMap<PortAddress, Holder> {
  const listed = new Map(['tcp', 'tcp6', 'udp', 'udp6'].map((file) => [file, listSockets(file)]));
  const inodes = new Map(
    ports.flatMap((port) => {
      const files = port.family === 'IPv4' ? ['', '6'] : ['6'];
      const sockets = files.flatMap((file) => listed.get(port.protocol.toLowerCase() + file) ?? []);
      const inode = inodeOf(port, sockets);
      return inode === undefined ? [] : [[port, inode] as const];
    }),
  );
  const holders = socketHolders(new Set(inodes.values()));
  return new Map(
    [...inodes].flatMap(([port, inode]) => {
      const owner = holders.get(inode);
      return owner ? [[port, owner] as const] : [];
    }),
  );
}

/** A listener before a client that happens to use the port for a connection of its own. */
function inodeOf(wanted: PortAddress, sockets: readonly ListedSocket[]): string | undefined {
  const conflicting = sockets.filter(({ ip, port }) => port === wanted.port && overlap(wanted.ip, ip));
  return (conflicting.find(({ listens }) => listens) ?? conflicting[0])?.inode;
}

/** `::` stands for IPv4 too, unless its program says otherwise. */
function overlap(wanted: Ip | '', other: Ip): boolean {
  return wanted === '' || wanted === other || other === '0.0.0.0' || other === '::';
}

/** A socket whose process is gone, as in TIME_WAIT, has no inode. */
const NO_INODE = '0';
const LISTEN = '0A';

function listSockets(file: string): readonly ListedSocket[] {
  const text = attempt(() => readFileSync(`/proc/net/${file}`, 'utf8')) ?? '';
  return text.split('\n').flatMap((line) => {
    const words = line.trim().split(/\s+/);
    const [address = '', port = ''] = (words[1] ?? '').split(':');
    const inode = words[9];
    const ip = parseIp(addressText(address));
    if (ip === undefined || inode === undefined || inode === NO_INODE) return [];
    return [{ ip, port: Number.parseInt(port, 16), listens: words[3] === LISTEN, inode }];
  });
}

/** The kernel prints addresses as numbers of four bytes in the machine's order: `0100007F` is 127.0.0.1. */
function addressText(hex: string): string {
  const numbers = (hex.match(/.{8}/g) ?? []).map((word) => Number.parseInt(word, 16));
  const bytes = Buffer.from(new Uint32Array(numbers).buffer);
  return bytes.length === 4 ? bytes.join('.') : (bytes.toString('hex').match(/.{4}/g) ?? []).join(':');
}
