/** The checks of names and addresses, on bytes. What they let through needs no further check, and is ASCII. */
const DOT = 0x2e;
const DASH = 0x2d;
const UNDERSCORE = 0x5f;
const ZERO = 0x30;

const MOST_LABEL = 63;
const MOST_SUBDOMAIN = 253;

function isLowerOrDigit(byte: number): boolean {
  return (byte >= 0x61 && byte <= 0x7a) || (byte >= ZERO && byte <= 0x39);
}

/** As `LABEL`. */
export function isLabel(bytes: Uint8Array, from: number, end: number): boolean {
  const length = end - from;
  if (length === 0 || length > MOST_LABEL) return false;
  return isDashed(bytes, from, end);
}

/** Lower-case letters, digits and dashes, with none of these at an end. */
function isDashed(bytes: Uint8Array, from: number, end: number): boolean {
  for (let at = from; at < end; at++) {
    const byte = bytes[at] ?? 0;
    if (!isLowerOrDigit(byte) && byte !== DASH) return false;
  }
  return end > from && bytes[from] !== DASH && bytes[end - 1] !== DASH;
}

/** As `SUBDOMAIN`. */
export function isSubdomain(bytes: Uint8Array, from: number, end: number): boolean {
  if (end - from > MOST_SUBDOMAIN) return false;
  let start = from;
  for (let at = from; at < end; at++) {
    if (bytes[at] !== DOT) continue;
    if (!isDashed(bytes, start, at)) return false;
    start = at + 1;
  }
  return isDashed(bytes, start, end);
}

/** As `LABEL_VALUE`. */
export function isLabelValue(bytes: Uint8Array, from: number, end: number): boolean {
  const length = end - from;
  if (length === 0 || length > MOST_LABEL) return false;
  for (let at = from; at < end; at++) {
    const byte = bytes[at] ?? 0;
    const isEnd = at === from || at === end - 1;
    const isInner = byte === DOT || byte === DASH || byte === UNDERSCORE;
    if (!isLowerOrDigit(byte) && !(byte >= 0x41 && byte <= 0x5a) && (isEnd || !isInner)) return false;
  }
  return true;
}

/**
 * An IPv4 address as it is always written, in no range that is special or near one. Of the others some are good too: they
 * are looked at again.
 */
export function isOrdinaryIpv4(bytes: Uint8Array, from: number, end: number): boolean {
  let octets = 0;
  let value = 0;
  let digits = 0;
  let first = 0;
  for (let at = from; at <= end; at++) {
    const byte = at === end ? DOT : (bytes[at] ?? 0);
    if (byte === DOT) {
      if (digits === 0 || value > 255) return false;
      if (octets === 0) first = value;
      octets++;
      value = 0;
      digits = 0;
      continue;
    }
    if (byte < ZERO || byte > 0x39 || (digits > 0 && value === 0) || digits === 3) return false;
    value = value * 10 + byte - ZERO;
    digits++;
  }
  return octets === 4 && first > 0 && first < 224 && first !== 127 && first !== 169;
}
