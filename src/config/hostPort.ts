/** `IP:port` texts, read as strictly and as leniently as kube-proxy reads them. */
import { familyOf, parseIp } from '../model/ip.ts';

export interface HostAndPort {
  readonly host: string;
  readonly port: string;
}

/** Splits at the last colon; an IPv6 host must stand in brackets, and only then may hold colons. */
export function splitHostPort(text: string): HostAndPort | undefined {
  const match = /^(?:\[([^[\]]*)\]|([^:[\]]*)):([^:[\]]*)$/.exec(text);
  return match ? { host: match[1] ?? match[2] ?? '', port: match[3] ?? '' } : undefined;
}

/** A bare IP gets the port; anything else stays as it is, for validation to judge. */
export function appendPort(address: string, port: number): string {
  if (splitHostPort(address)) return address;
  const ip = parseIp(address);
  if (ip === undefined) return address;
  return familyOf(ip) === 'IPv4' ? `${address}:${port}` : `[${address}]:${port}`;
}

export function isPort(text: string): boolean {
  return /^\+?\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535;
}
