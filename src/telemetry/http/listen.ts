/** Opening and closing listening sockets. */
import type { Server } from 'node:http';

export interface ListenOptions {
  readonly host?: string;
  readonly port: number;
  /** Of `::`: leave the port free on IPv4. */
  readonly ipv6Only?: boolean;
}

export interface HostPort {
  /** Without brackets; empty: every address. */
  readonly host: string;
  readonly port: number;
}

/** `0.0.0.0:10256`, `[::]:10256`, `:10256` */
export function splitHostPort(address: string): HostPort | undefined {
  const match = /^(?:\[([^\]]*)\]|([^:[\]]*)):(\d{1,5})$/.exec(address);
  if (!match) return undefined;
  const port = Number(match[3]);
  return port > 65_535 ? undefined : { host: match[1] ?? match[2] ?? '', port };
}

export function listen(server: Server, options: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: Error): void => reject(error);
    server.once('error', onError);
    server.listen({ ...options, exclusive: true }, () => {
      server.off('error', onError);
      resolve();
    });
  });
}

/** Every address of either family where one of them is asked for, as Go's `net.Listen("tcp", …)` does. */
export function listenAsGo(server: Server, { host, port }: HostPort): Promise<void> {
  // Without a host, Node listens on `::` for both families, and on 0.0.0.0 where there is no IPv6.
  return listen(server, ['', '0.0.0.0', '::'].includes(host) ? { port } : { host, port });
}

/** Resolves when the port is free again. Clients that are still connected are cut off. */
export function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
