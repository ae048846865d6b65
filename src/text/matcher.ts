/** Names by a part of them, as people ask for services. */

/** A part of the text, or with `*` a pattern for all of it. */
export function matcherOf(pattern: string | undefined): (text: string) => boolean {
  if (pattern === undefined || pattern === '') return () => true;
  if (!pattern.includes('*')) return (text) => text.includes(pattern);
  const escaped = pattern.split('*').map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`));
  // Without a slash it is about the name: `web*`.
  const prefix = pattern.includes('/') ? '' : '(?:.*/)?';
  const expression = new RegExp(`^${prefix}${escaped.join('.*')}$`, 's');
  return (text) => expression.test(text);
}
