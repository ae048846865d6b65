/**
 * One line of a restore or a save, as words.
 *
 * Quotes work as in iptables' own reader: a double quote may open anywhere, a backslash escapes only inside the
 * quotes, and the closing quote ends the word.
 */
const TAB = 9;
const SPACE = 32;
const QUOTE = 34;
const BACKSLASH = 92;

/** The words of `text` from `start` to `end`, or undefined when a quote stays open. */
export function tokenize(text: string, start = 0, end = text.length): string[] | undefined {
  const words: string[] = [];
  let at = start;
  while (at < end) {
    const first = text.charCodeAt(at);
    if (first === SPACE || first === TAB) {
      at++;
      continue;
    }
    const from = at;
    const stop = first === QUOTE ? closingQuote(text, at + 1, end) : endOfWord(text, at + 1, end);
    if (stop === PLAIN_WORD_HAS_QUOTE || stop === NO_PLAIN_QUOTES) {
      const word = readSlowly(text, from, end);
      if (word === undefined) return undefined;
      words.push(word.text);
      at = word.next;
    } else if (first === QUOTE) {
      words.push(text.slice(from + 1, stop));
      at = stop + 1;
    } else {
      words.push(text.slice(from, stop));
      at = stop;
    }
  }
  return words;
}

const NO_PLAIN_QUOTES = -1;
const PLAIN_WORD_HAS_QUOTE = -2;

function closingQuote(text: string, from: number, end: number): number {
  for (let at = from; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) return NO_PLAIN_QUOTES;
  }
  return NO_PLAIN_QUOTES;
}

function endOfWord(text: string, from: number, end: number): number {
  for (let at = from; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code === SPACE || code === TAB) return at;
    if (code === QUOTE) return PLAIN_WORD_HAS_QUOTE;
  }
  return end;
}

function readSlowly(
  text: string,
  start: number,
  end: number,
): { readonly text: string; readonly next: number } | undefined {
  let word = '';
  let open = false;
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at);
    if (open && code === BACKSLASH) {
      at++;
      if (at < end) word += text.charAt(at);
    } else if (code === QUOTE) {
      if (open) return { text: word, next: at + 1 };
      open = true;
    } else if (!open && (code === SPACE || code === TAB)) {
      return { text: word, next: at };
    } else {
      word += text.charAt(at);
    }
  }
  return open ? undefined : { text: word, next: end };
}
