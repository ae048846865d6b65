/**
 * Kernel settings under /proc/sys. Names are written with slashes (`net/ipv4/conf/all/route_localnet`), because an
 * interface's name may hold dots.
 *
 * Synchronous on purpose: /proc/sys/net shows the network namespace of the thread that opens it, and Node's
 * asynchronous file calls run on other threads.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { JunctionError } from '../errors.ts';

export interface SysctlOptions {
  readonly root?: string | undefined;
}

export interface SysctlChange {
  readonly name: string;
  readonly previous: string;
  readonly value: string;
  readonly changed: boolean;
}

export function readSysctl(name: string, options: SysctlOptions = {}): string {
  try {
    return readFileSync(pathOf(name, options), 'utf8').trim();
  } catch (error) {
    throw sysctlError(name, 'read', error);
  }
}

/** Writes only what is not so already: /proc/sys is often read-only where the values are right. */
export function ensureSysctl(
  name: string,
  value: string | number,
  options: SysctlOptions = {},
): SysctlChange {
  const wanted = String(value);
  const previous = readSysctl(name, options);
  if (sameValue(previous, wanted)) return { name, previous, value: wanted, changed: false };
  try {
    writeFileSync(pathOf(name, options), wanted);
  } catch (error) {
    throw sysctlError(name, `set to ${wanted}`, error);
  }
  return { name, previous, value: wanted, changed: true };
}

/** Settings of several numbers are printed with tabs between them. */
function sameValue(left: string, right: string): boolean {
  return left.split(/\s+/).join(' ') === right.trim().split(/\s+/).join(' ');
}

function pathOf(name: string, options: SysctlOptions): string {
  return join(options.root ?? '/proc/sys', name);
}

function sysctlError(name: string, doing: string, cause: unknown): JunctionError {
  const errno = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown error';
  const message = `cannot ${doing === 'read' ? 'read' : 'write'} sysctl ${name}${doing === 'read' ? '' : ` (${doing})`}: ${errno}`;
  switch (errno) {
    case 'ENOENT':
    case 'ENOTDIR':
      return new JunctionError('SYSCTL_MISSING', message, { cause });
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new JunctionError('SYSCTL_DENIED', message, { cause });
    default:
      return new JunctionError('SYSCTL_REFUSED', message, { cause });
  }
}
