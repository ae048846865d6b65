/** Whether this node routes packets to 127.0.0.0/8, so that a neighbour's packet can reach what listens there. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The kernel takes the setting of `all` or that of the interface, whichever is on. What cannot be read counts as on: a
 * guard too many drops only packets that nobody should send.
 */
export function isLocalnetRouted(root = '/proc/sys'): boolean {
  const folder = join(root, 'net/ipv4/conf');
  try {
    return readdirSync(folder).some(
      (device) => readFileSync(join(folder, device, 'route_localnet'), 'utf8').trim() !== '0',
    );
  } catch {
    return true;
  }
}
