/** What nft prints, so that two listings of one table are equal: sets are printed in the order of their hashes. */

/** Elements in one order, one to a line. */
export function inOneOrder(listing: string): readonly string[] {
  return listing
    .replaceAll(/elements = \{([^}]*)\}/g, (_, list: string) => {
      const elements = list.split(',').map((each) => each.trim().replaceAll(/\s+/g, ' '));
      return `elements = {\n${elements
        .sort()
        .map((each) => `\t\t\t${each}\n`)
        .join('')}\t\t}`;
    })
    .split('\n');
}

/** nft 1.0.6 prints the rules that remember clients by IPv6, and cannot read them. */
export function loadable(text: string): string {
  return text
    .split('\n')
    .filter((line) => !(line.includes('update @affinity-') && line.includes('ip6 ')))
    .join('\n');
}
