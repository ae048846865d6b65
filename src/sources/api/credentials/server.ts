/** The address of an API server. */
import { isIPv6 } from 'node:net';
import { JunctionError } from '../../../errors.ts';
import { quote } from '../../../model/project/quote.ts';

/** A server without a scheme is taken as `kubectl` takes it: HTTPS when anything speaks of TLS, else HTTP. */
export function readServer(text: string, where: string, speaksOfTls: boolean): URL {
  const withScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text)
    ? text
    : `${speaksOfTls ? 'https' : 'http'}://${text}`;
  const url = URL.canParse(withScheme) ? new URL(withScheme) : undefined;
  const isGood =
    url !== undefined &&
    (url.protocol === 'https:' || url.protocol === 'http:') &&
    url.search === '' &&
    url.hash === '' &&
    url.username === '' &&
    url.password === '';
  if (isGood) return url;
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
