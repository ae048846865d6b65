/** The address of an API server, and of the HTTP proxy, if any, between Junction and it. */
import { isIP, isIPv6 } from 'node:net';
import { JunctionError } from '../../../errors.ts';
import { cidrContains, parseCidr, parseIp } from '../../../model/ip.ts';
import { quote } from '../../../text/printable.ts';

/** A server without a scheme is taken as `kubectl` takes it: HTTPS when anything speaks of TLS, else HTTP. */
export function readServer(text: string, where: string, speaksOfTls: boolean): URL {
  const withScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text)
    ? text
    : `${speaksOfTls ? 'https' : 'http'}://${text}`;
  const url = URL.canParse(withScheme) ? new URL(withScheme) : undefined;
  const isBare = url && [url.search, url.hash, url.username, url.password].every((part) => part === '');
  if (isBare && (url.protocol === 'https:' || url.protocol === 'http:')) return url;
  const shown = url?.password ? 'the address' : quote(text);
  throw new JunctionError('KUBECONFIG_INVALID', `${where}: ${shown} is not the address of an API server`, {
    hint: 'Give a URL such as https://10.0.0.1:6443.',
  });
}

/** Host and port as they were written, the port also where it is the scheme's own, which a URL leaves out. */
export function writtenHost(text: string): string {
  return text.replace(/^[a-z][a-z0-9+.-]*:\/\//i, '').replace(/\/.*/s, '');
}

export function hostAndPort(host: string, port: string): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

export function readProxy(text: string, where: string): URL | undefined {
  if (text === '') return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  throw new JunctionError('KUBECONFIG_INVALID', `${where} is not the address of an HTTP proxy`, {
    hint: 'Give a URL such as http://proxy.example:3128; SOCKS proxies are not supported.',
  });
}

type Env = Readonly<Record<string, string | undefined>>;

/** From HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as programs in Go read them. */
export function proxyFromEnvironment(server: URL, env: Env): URL | undefined {
  const name = server.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const text = env[name] || env[name.toLowerCase()] || '';
  if (text === '' || isExempt(server, env['NO_PROXY'] || env['no_proxy'] || '')) return undefined;
  return readProxy(text.includes('://') ? text : `http://${text}`, name);
}

function isExempt(server: URL, exemptions: string): boolean {
  const host = server.hostname.replace(/^\[|\]$/g, '').toLowerCase();
  const port = server.port || (server.protocol === 'https:' ? '443' : '80');
  if (host === 'localhost' || host === '::1' || host.startsWith('127.')) return true;
  return exemptions
    .split(',')
    .map((each) => each.trim().toLowerCase())
    .some((each) => each !== '' && matches(each, host, port));
}

/** `*`, a range, an address or a name, the last two perhaps with a port. A name stands for its subdomains too. */
function matches(exemption: string, host: string, port: string): boolean {
  if (exemption === '*') return true;
  const ip = isIP(host) === 0 ? undefined : parseIp(host);
  const range = parseCidr(exemption);
  if (range !== undefined) return ip !== undefined && cidrContains(range, ip);
  const { name, wantedPort } = splitPort(exemption);
  if (wantedPort !== undefined && wantedPort !== port) return false;
  if (ip !== undefined) return parseIp(name) === ip;
  const domain = name.replace(/^\*?\./, '');
  return (domain === name && host === domain) || host.endsWith(`.${domain}`);
}

function splitPort(text: string): { readonly name: string; readonly wantedPort: string | undefined } {
  if (isIP(text) !== 0) return { name: text, wantedPort: undefined };
  const [, name = '', wantedPort] = /^(.*?)(?::(\d+))?$/.exec(text) ?? [];
  return { name: name.replaceAll(/^\[|\]$/g, ''), wantedPort };
}
