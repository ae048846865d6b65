/** Netlink messages as text, in words of four bytes. For little-endian machines, which is where tests run. */
import { MessageWriter } from '../../../src/netlink/codec.ts';
import type { NetlinkRequest } from '../../../src/netlink/request.ts';

/** The message with sequence number 1, and no flags but its own. */
export function requestHex({ type, flags, payload }: NetlinkRequest): string {
  const bytes = new MessageWriter(8).message({ type, flags, sequence: 1 }, payload).finish();
  return inWords(Buffer.from(bytes).toString('hex'));
}

/** However it is broken into lines. */
export function inWords(hex: string): string {
  return hex.replaceAll(/\s/g, '').replace(/(.{8})(?=.)/g, '$1 ');
}

export function unhex(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text.replaceAll(/\s/g, ''), 'hex'));
}
