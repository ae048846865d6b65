import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Unprivileged users often have no sbin in their PATH, where `ip` and `iptables` live. */
const SYSTEM_FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/local/bin', '/usr/bin', '/bin'];

export const TOOL_PATH = [
  ...new Set([...(process.env['PATH'] ?? '').split(':').filter(Boolean), ...SYSTEM_FOLDERS]),
].join(':');

/** For processes of the lab: what the test runner wants of its own Node processes is not meant for them. */
export function toolEnvironment(): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _options, NODE_V8_COVERAGE: _coverage, ...environment } = process.env;
  return { ...environment, PATH: TOOL_PATH };
}

export function isInstalled(program: string): boolean {
  return TOOL_PATH.split(':').some((folder) => existsSync(join(folder, program)));
}
