/** `IP:port` texts, read as strictly and as leniently as kube-proxy reads them. */
import { familyOf, parseIp } from '../model/ip.ts';

export interface HostAndPort {
  readonly host: string;
  readonly port: string;
}

/** Splits at the last colon; an IPv6 host must stand in brackets, and only then may hold colons. Faults are in Go's words. */
export function splitHostPort(text: string): HostAndPort | { readonly fault: string } {
  const match = /^(?:\[([^[\]]*)\]|([^:[\]]*)):([^:[\]]*)$/.exec(text);
  if (match) return { host: match[1] ?? match[2] ?? '', port: match[3] ?? '' };
  return { fault: `address ${text}: ${faultOf(text)} in address` };
}

function faultOf(text: string): string {
  const colon = text.lastIndexOf(':');
  if (colon < 0) return 'missing port';
  if (!text.startsWith('[')) {
    if (text.indexOf(':') < colon) return 'too many colons';
  } else {
    const end = text.indexOf(']');
    if (end < 0) return "missing ']'";
    if (end + 1 !== colon) return text.charAt(end + 1) === ':' ? 'too many colons' : 'missing port';
  }
  return text.includes('[', 1) || !text.includes(']') ? "unexpected '['" : "unexpected ']'";
}

/** A bare IP gets the port; anything else stays as it is, for validation to judge. */
export function appendPort(address: string, port: number): string {
  if (!('fault' in splitHostPort(address))) return address;
  const ip = parseIp(address);
  if (ip === undefined) return address;
  return familyOf(ip) === 'IPv4' ? `${address}:${port}` : `[${address}]:${port}`;
}

export function isPort(text: string): boolean {
  return /^\+?\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535;
}
