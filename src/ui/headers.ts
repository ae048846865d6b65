/** Headers of answers, by names that a program may write in any case. */
type AnswerHeaders = Readonly<Record<string, string>>;

/** `names` are in small letters. */
export function withoutHeaders(headers: AnswerHeaders, names: ReadonlySet<string>): AnswerHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.has(name.toLowerCase())));
}
