/** Names as people type them. */
import { UsageError } from './commands.ts';

const KIND = /^(?:svc|service|services)\//;

/**
 * `shop/web`, `svc/shop/web`; with `-n shop` also `web` and `svc/web`, as with kubectl. A port may stand behind it. Returns
 * `shop/web`, with the port.
 */
export function serviceName(text: string, namespace: string): string {
  const [, name = '', rest = ''] = /^([^:]*)(.*)$/s.exec(text) ?? [];
  const parts = name.split('/');
  if (namespace !== '') {
    const bare = KIND.test(name) && parts.length === 2 ? (parts[1] ?? '') : name;
    if (!bare.includes('/')) return `${namespace}/${bare}${rest}`;
    const full = parts.length === 3 ? name.replace(KIND, '') : name;
    if (full.startsWith(`${namespace}/`)) return full + rest;
    throw new UsageError([`${JSON.stringify(text)} names another namespace than --namespace ${namespace}`]);
  }
  return (parts.length === 3 ? name.replace(KIND, '') : name) + rest;
}

/** The same for `--from pod/…` and `--to svc/…`; addresses stay as they are. */
export function peerName(text: string, namespace: string): string {
  if (namespace === '') return text;
  const [, kind = '', name = '', rest = ''] = /^([a-z]+)\/([^/:]+)((?::.*)?)$/s.exec(text) ?? [];
  return kind === '' ? text : `${kind}/${namespace}/${name}${rest}`;
}
