/**
 * IP addresses and CIDRs as canonical text.
 *
 * Reading is lenient as Kubernetes is towards objects that were stored long ago: leading zeros, which mean nothing (an
 * octet stays decimal), IPv4-mapped IPv6, and CIDRs with host bits. What comes out is always canonical (RFC 5952 for IPv6, masked CIDRs), so equal addresses are equal strings and the text can go
 * into a rule as it is.
 */
declare const ipBrand: unique symbol;
declare const cidrBrand: unique symbol;

/** A canonical address: `10.0.0.1` or `fd00::1`. Made only by `parseIp`. */
export type Ip = string & { readonly [ipBrand]: true };
/** A canonical, masked CIDR: `10.0.0.0/8`. Made only by `parseCidr` and `hostCidr`. */
export type Cidr = string & { readonly [cidrBrand]: true };

export type Family = 'IPv4' | 'IPv6';
export const FAMILIES: readonly Family[] = ['IPv4', 'IPv6'];

/** Most addresses are written like this already, and large objects have tens of thousands of them. */
const CANONICAL_IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;

/** All eight groups; two zeros side by side would have to be `::`. */
const FULL_IPV6 = /^(?!.*(?:^|:)0:0(?::|$))(?:(?:[1-9a-f][0-9a-f]{0,3}|0)(?::(?!$)|$)){8}$/;
/** At most six groups around `::`, none of them zero; what begins with `::ffff:` may be an IPv4 address. */
const SHORT_IPV6 =
  /^(?!::ffff:)(?!(?:[^:]*:){8})(?:[1-9a-f][0-9a-f]{0,3}(?::[1-9a-f][0-9a-f]{0,3}){0,5})?::(?:[1-9a-f][0-9a-f]{0,3}(?::[1-9a-f][0-9a-f]{0,3}){0,5})?$/;

export function parseIp(text: string): Ip | undefined {
  if (CANONICAL_IPV4.test(text) || isCanonicalIpv6(text)) return text as Ip;
  const bytes = parseBytes(text);
  return bytes && ipOfBytes(bytes);
}

function isCanonicalIpv6(text: string): boolean {
  if (!text.includes(':')) return false;
  if (!text.includes('::')) return FULL_IPV6.test(text);
  if (!SHORT_IPV6.test(text)) return false;
  let groups = text.startsWith('::') ? 0 : 1;
  for (let at = text.indexOf(':'); at >= 0; at = text.indexOf(':', at + 1)) groups++;
  return groups - (text.endsWith('::') ? 2 : 1) <= 6;
}

export function parseCidr(text: string): Cidr | undefined {
  const slash = text.indexOf('/');
  if (slash < 0) return undefined;
  const prefixText = text.slice(slash + 1);
  if (!/^0*[0-9]{1,3}$/.test(prefixText)) return undefined;
  const addressText = text.slice(0, slash);
  let prefix = Number(prefixText);
  if (isMasked(addressText, prefix) && String(prefix) === prefixText) return text as Cidr;
  const bytes = parseBytes(addressText);
  if (!bytes) return undefined;
  if (bytes.length === 4 && addressText.includes(':')) prefix -= 96; // an IPv4-mapped literal counts its bits in IPv6
  if (prefix < 0 || prefix > bytes.length * 8) return undefined;
  return `${printBytes(maskBytes(bytes, prefix))}/${prefix}` as Cidr;
}

/** `fd00:1::` with a prefix of 32 or more; of some others, too, this would be true. */
function isMasked(text: string, prefix: number): boolean {
  if (!text.endsWith('::') || prefix > 128 || !isCanonicalIpv6(text)) return false;
  return (text.split(':').length - 2) * 16 <= prefix;
}

/** From the 4 or 16 bytes that packets and the kernel have. */
export function ipOfBytes(bytes: Uint8Array): Ip | undefined {
  return bytes.length === 4 || bytes.length === 16 ? (printBytes(bytes) as Ip) : undefined;
}

/** The CIDR that holds this one address. */
export function hostCidr(ip: Ip): Cidr {
  return `${ip}/${familyOf(ip) === 'IPv4' ? 32 : 128}` as Cidr;
}

export function familyOf(address: Ip | Cidr): Family {
  return address.includes(':') ? 'IPv6' : 'IPv4';
}

export function prefixOf(cidr: Cidr): number {
  return Number(cidr.slice(cidr.indexOf('/') + 1));
}

export function cidrContains(cidr: Cidr, ip: Ip): boolean {
  if (familyOf(cidr) !== familyOf(ip)) return false;
  const bytes = parseBytes(ip);
  if (!bytes) return false;
  const prefix = prefixOf(cidr);
  return printBytes(maskBytes(bytes, prefix)) === cidr.slice(0, cidr.indexOf('/'));
}

export function isLoopback(ip: Ip): boolean {
  return ip === '::1' || ip.startsWith('127.');
}

export const LOOPBACK: Readonly<Record<Family, Ip>> = { IPv4: '127.0.0.1' as Ip, IPv6: '::1' as Ip };

export const LOOPBACK_RANGE: Readonly<Record<Family, Cidr>> = {
  IPv4: '127.0.0.0/8' as Cidr,
  IPv6: '::1/128' as Cidr,
};

/** `10.0.0.1:80`, `[fd00::1]:80` */
export function hostPort(ip: Ip, port: number): string {
  return familyOf(ip) === 'IPv4' ? `${ip}:${port}` : `[${ip}]:${port}`;
}

export function parseBytes(text: string): Uint8Array | undefined {
  return text.includes(':') ? parseIpv6(text) : parseIpv4(text);
}

const IPV4 = /^(\d+)\.(\d+)\.(\d+)\.(\d+)$/;

function parseIpv4(text: string): Uint8Array | undefined {
  const match = IPV4.exec(text);
  if (!match) return undefined;
  const bytes = new Uint8Array(4);
  for (let index = 0; index < 4; index++) {
    const octet = Number(match[index + 1]);
    if (octet > 255) return undefined;
    bytes[index] = octet;
  }
  return bytes;
}

function parseIpv6(text: string): Uint8Array | undefined {
  const halves = text.split('::');
  if (halves.length > 2) return undefined;
  const head = parseGroups(halves[0] ?? '', halves.length === 1);
  const tail = halves.length === 2 ? parseGroups(halves[1] ?? '', true) : [];
  if (!head || !tail) return undefined;
  const missing = 8 - head.length - tail.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined;
  const groups = [...head, ...Array.from({ length: missing }, () => 0), ...tail];
  const bytes = new Uint8Array(16);
  groups.forEach((group, index) => {
    bytes[index * 2] = group >> 8;
    bytes[index * 2 + 1] = group & 0xff;
  });
  return isMappedIpv4(groups) ? bytes.slice(12) : bytes;
}

function parseGroups(text: string, mayEndInIpv4: boolean): number[] | undefined {
  if (text === '') return [];
  const parts = text.split(':');
  const groups: number[] = [];
  for (const [index, part] of parts.entries()) {
    if (part.includes('.')) {
      const quad = mayEndInIpv4 && index === parts.length - 1 ? parseIpv4(part) : undefined;
      if (!quad) return undefined;
      groups.push(((quad[0] ?? 0) << 8) | (quad[1] ?? 0), ((quad[2] ?? 0) << 8) | (quad[3] ?? 0));
    } else {
      if (!/^0*[0-9a-fA-F]{1,4}$/.test(part)) return undefined;
      groups.push(Number.parseInt(part, 16));
    }
  }
  return groups;
}

function isMappedIpv4(groups: readonly number[]): boolean {
  return groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0);
}

function maskBytes(bytes: Uint8Array, prefix: number): Uint8Array {
  return bytes.map((byte, index) => {
    const bits = Math.min(8, Math.max(0, prefix - index * 8));
    return byte & (0xff << (8 - bits)) & 0xff;
  });
}

function printBytes(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.');
  const groups = Array.from(
    { length: 8 },
    (_, index) => ((bytes[index * 2] ?? 0) << 8) | (bytes[index * 2 + 1] ?? 0),
  );
  const [start, length] = longestZeroRun(groups);
  const hex = (part: readonly number[]): string => part.map((group) => group.toString(16)).join(':');
  if (length < 2) return hex(groups);
  return `${hex(groups.slice(0, start))}::${hex(groups.slice(start + length))}`;
}

function longestZeroRun(groups: readonly number[]): readonly [start: number, length: number] {
  let best: readonly [number, number] = [0, 0];
  let start = 0;
  for (let index = 0; index <= groups.length; index++) {
    if (groups[index] === 0) continue;
    if (index - start > best[1]) best = [start, index - start];
    start = index + 1;
  }
  return best;
}
