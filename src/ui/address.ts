/** Where the page is served. */
import { splitAddress } from '../config/goFormats.ts';
import { type Ip, isLoopback, LOOPBACK, parseIp } from '../model/ip.ts';

export interface UiAddress {
  readonly host: Ip;
  /** 0: the kernel chooses one. */
  readonly port: number;
  /** Only programs on this machine reach it. */
  readonly isLoopback: boolean;
}

/** `8080`, `:8080` and `localhost:8080` are 127.0.0.1: beyond loopback nothing is opened that was not named. */
export function parseUiAddress(text: string): UiAddress | undefined {
  const parts = splitAddress(/^\d+$/.test(text) ? `:${text}` : text);
  if ('fault' in parts || !/^\d{1,5}$/.test(parts.port) || Number(parts.port) > 65_535) return undefined;
  const host = ['', 'localhost'].includes(parts.host) ? LOOPBACK.IPv4 : parseIp(parts.host);
  return host && { host, port: Number(parts.port), isLoopback: isLoopback(host) };
}
