/** What is typed into the search, as terms that must all be found. */
export interface Term {
  readonly text: string;
  /** Services have endpoints at addresses that begin so: the proxy is asked for them. */
  readonly isAddress: boolean;
}

/** By term: services that the proxy named. */
export type EndpointMatches = ReadonlyMap<string, ReadonlySet<string>>;

const WITH_PORT = /^(?:(\d+(?:\.\d+){3})|\[([\da-f:.]+)\])(:\d+)$/;

/** `10.96.0.10:80` is an address and a port; `:80` ports that begin so, and `:80/` that one. */
export function termsOf(search: string): readonly Term[] {
  return search
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((text) => text !== '')
    .flatMap((text) => {
      const [, v4, v6, port] = WITH_PORT.exec(text) ?? [];
      const address = v4 ?? v6;
      return address === undefined || port === undefined ? [text] : [address, `${port}/`];
    })
    .map((text) => ({ text, isAddress: isAddressStart(text) }));
}

/** With enough of it that not half of all services have one. */
function isAddressStart(text: string): boolean {
  if (/^\d{1,3}\.\d{1,3}\.[\d.]*$/.test(text)) return text.length <= 15;
  return /^[\da-f]{1,4}:[\da-f]{0,4}:[\da-f:.]*$/.test(text) && text.length <= 45;
}

export function isFound(
  { service, text }: { readonly service: string; readonly text: string },
  terms: readonly Term[],
  endpoints: EndpointMatches,
): boolean {
  for (const term of terms)
    if (!text.includes(term.text) && !(term.isAddress && endpoints.get(term.text)?.has(service)))
      return false;
  return true;
}

/** What `after` finds is among what `before` found. */
export function isNarrower(after: readonly Term[], before: readonly Term[]): boolean {
  return before.every(({ text, isAddress }, index) => {
    const same = after[index];
    // The endpoints of a longer address are known later.
    return (
      same !== undefined &&
      (same.text === text || (!isAddress && !same.isAddress && same.text.includes(text)))
    );
  });
}
