/** Services by the addresses of their endpoints, which only the proxy knows: asked when a part of an address was typed. */
import { useEffect, useState } from 'preact/hooks';
import { apiPath, askJson } from '../../api.ts';
import { live } from '../../live.ts';
import { type EndpointMatches, termsOf } from './search.ts';

const TYPING_PAUSE_MS = 150;
const NONE: EndpointMatches = new Map();

export function useEndpointMatches(search: string): EndpointMatches {
  const [matches, setMatches] = useState(NONE);
  const addresses = termsOf(search)
    .filter(({ isAddress }) => isAddress)
    .map(({ text }) => text)
    .join(' ');
  useEffect(() => {
    if (addresses === '') {
      setMatches(NONE);
      return;
    }
    const ended = new AbortController();
    const timer = setTimeout(() => {
      void live
        .opened()
        .then(() => Promise.all(addresses.split(' ').map((address) => servicesAt(address, ended.signal))))
        .then((found) => setMatches(new Map(found)))
        // What is in the table is found without it.
        .catch(() => undefined);
    }, TYPING_PAUSE_MS);
    return () => {
      clearTimeout(timer);
      ended.abort();
    };
  }, [addresses]);
  return matches;
}

async function servicesAt(
  address: string,
  signal: AbortSignal,
): Promise<readonly [address: string, services: ReadonlySet<string>]> {
  const path = apiPath(['names'], { kind: 'services', endpoint: address });
  return [address, new Set(await askJson<readonly string[]>(path, signal))];
}
