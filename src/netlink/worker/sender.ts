/** Who is behind a message: the kernel puts the name of the socket into it whose request it comes of. */
import { HEADER_BYTES, LITTLE_ENDIAN } from '../codec.ts';

const SENDER_OFFSET = 12;

/** Of the first message, which is also that of the others in an answer; `undefined` where there is none. */
export function senderOf(datagram: Uint8Array): number | undefined {
  return datagram.length < HEADER_BYTES
    ? undefined
    : viewOf(datagram).getUint32(SENDER_OFFSET, LITTLE_ENDIAN);
}

/** Whether all of these messages, each of which is whole, come of one socket's requests. */
export function isAllFrom(datagram: Uint8Array, sender: number | undefined): boolean {
  if (sender === undefined) return false;
  const view = viewOf(datagram);
  for (let offset = 0; offset < datagram.length; ) {
    if (view.getUint32(offset + SENDER_OFFSET, LITTLE_ENDIAN) !== sender) return false;
    offset += (view.getUint32(offset, LITTLE_ENDIAN) + 3) & ~3;
  }
  return true;
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
